package cell

import (
	"fmt"
	"io"
)

// maxResult bounds the result file of a task. Diego takes 50 KiB; the staging
// result of an app with many processes may be larger.
const maxResult = 1 << 20

// collect reads the result. A task that failed may have written why: its result
// is read where there is one.
func (i *instance) collect(end ending) ([]byte, error) {
	result, err := i.readResult()
	if err != nil && !i.exit(end).Failed {
		return nil, &blame{"failed to fetch result", err}
	}
	return result, nil
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
