package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"cupola/runtime/lrp"
)

// maxResult bounds the result file of a task. Diego takes 50 KiB; the staging
// result of an app with many processes may be larger.
const maxResult = 1 << 20

// leftBehind is what a task produced.
type leftBehind struct {
	result  []byte
	outputs []lrp.Blob
}

// collect reads the result and, when the task ended well, keeps its outputs. A
// task that failed may have written why: its result is read where there is one.
func (i *instance) collect(ctx context.Context, end ending) (leftBehind, error) {
	var left leftBehind
	failed := i.exit(end).Failed
	result, err := i.readResult()
	if err != nil && !failed {
		return left, &blame{"failed to fetch result", err}
	}
	left.result = result
	if failed {
		return left, nil
	}
	for _, o := range i.record().Plan.Outputs {
		blob, err := i.keepOutput(ctx, o)
		if errors.Is(err, os.ErrNotExist) && o.Optional {
			continue
		}
		if err != nil {
			return left, &blame{"Failed to upload payload for " + o.Name, err}
		}
		left.outputs = append(left.outputs, blob)
	}
	return left, nil
}

func (i *instance) readResult() ([]byte, error) {
	if i.spec.ResultFile == "" {
		return nil, nil
	}
	f, err := i.cell.cfg.RootFS.Open(i.guid(), i.spec.ResultFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	result, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return nil, err
	}
	if len(result) > maxResult {
		return nil, fmt.Errorf("result file %s is larger than %d bytes", i.spec.ResultFile, maxResult)
	}
	return result, nil
}

func (i *instance) keepOutput(ctx context.Context, o output1) (lrp.Blob, error) {
	f, err := i.cell.cfg.RootFS.Open(i.guid(), o.Path)
	if err != nil {
		return lrp.Blob{}, err
	}
	defer f.Close()
	return i.cell.cfg.Keep(ctx, o.Name, f)
}
