package cell

import (
	"fmt"
	"time"

	"cupola/runtime/lrp"
)

// line logs text under the container's name, as coming from source.
func (i *instance) line(source string, isErr bool, text string) {
	i.cell.cfg.Logs(lrp.LogLine{Target: i.logTarget(source), At: time.Now(), Err: isErr, Text: []byte(text)})
}

// logf writes a line about the container to its log.
func (i *instance) logf(format string, args ...any) {
	i.line(i.cellSource(), false, fmt.Sprintf(format, args...))
}

// errorf writes a line about a failure to the container's log.
func (i *instance) errorf(format string, args ...any) {
	i.line(i.cellSource(), true, fmt.Sprintf(format, args...))
}

// cellSource is the source of the cell's own lines: CC has them logged as CELL
// for apps, and as the task's own source for tasks.
func (i *instance) cellSource() string {
	if i.spec.Kind == lrp.KindInstance {
		return "CELL"
	}
	return i.spec.Log.Source
}
