package cell

import (
	"fmt"
	"time"

	"cupola/runtime/lrp"
)

// line logs text under the container's name, as coming from source.
func (i *instance) line(source string, isErr bool, text string) {
	target := i.spec.Log
	target.Source = source
	i.cell.cfg.Logs(lrp.LogLine{Target: target, At: time.Now(), Err: isErr, Text: []byte(text)})
}

// say logs what the cell does with the container.
func (i *instance) say(format string, args ...any) {
	i.line(i.cellSource(), false, fmt.Sprintf(format, args...))
}

// complain logs what the cell dislikes about the container.
func (i *instance) complain(format string, args ...any) {
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
