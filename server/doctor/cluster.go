package doctor

import (
	"context"
	"errors"
	"time"
)

// clusterTime is how long a cluster may take to answer.
const clusterTime = 15 * time.Second

// cluster makes the check of a Kubernetes cluster that is a cell.
func (m *machine) cluster(name string) func(context.Context) Result {
	return func(ctx context.Context) Result {
		ctx, cancel := context.WithTimeoutCause(ctx, clusterTime, errors.New("it does not answer"))
		defer cancel()
		mend, err := m.Clusters[name](ctx)
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		if err != nil {
			return failed(err, mend)
		}
		return fine("answers, and would take pods of apps")
	}
}
