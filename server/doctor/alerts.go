package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"cupola/server/alerts"
)

// alerts reports the targets that take no messages.
func (m *machine) alerts(context.Context) Result {
	file := filepath.Join(m.DataDir, alerts.StatusName)
	failing, err := alerts.ReadFailing(file)
	if err != nil {
		return failed(err, "ls -l "+file)
	}
	return judgeAlerts(failing, m.now)
}

func judgeAlerts(failing []alerts.FailingTarget, now time.Time) Result {
	if len(failing) == 0 {
		return fine("no target of alerts fails")
	}
	t := failing[0]
	text := fmt.Sprintf("the target %s takes no alerts (for %s): %s; at least %d wait", t.Name, now.Sub(t.Since).Round(time.Second), t.Error, t.Waiting)
	if n := len(failing) - 1; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return warning(text, "sudo cupola alerts test "+t.Name)
}
