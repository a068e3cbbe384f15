package apps

import (
	"strings"
	"unicode/utf8"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// ProcessChange is a change of a process.
type ProcessChange struct {
	Command        change.Field[string] `json:"command"`
	User           change.Field[string] `json:"user"`
	HealthCheck    *Check               `json:"health_check"`
	ReadinessCheck *Check               `json:"readiness_health_check"`
	Metadata       *change.Metadata     `json:"metadata"`
}

// UpdateProcess changes a process of an app.
func UpdateProcess(c *control.Session, app *cf.App, p *cf.Process, req ProcessChange) error {
	if err := MayChange(c, p, app, NoUpdate); err != nil {
		return err
	}
	if err := req.apply(p); err != nil {
		return err
	}
	if err := store.Processes.Update(c.Tx, p); err != nil {
		return err
	}
	return ProcessUpdated(c, app, p, c.Asked)
}

// ProcessUpdated records that a process of an app was changed as a request asked.
func ProcessUpdated(c *control.Session, app *cf.App, p *cf.Process, request audit.Data) error {
	return processEvent(c, audit.AppProcessUpdate, app, p, c.Request(request))
}

func (r ProcessChange) apply(p *cf.Process) error {
	if utf8.RuneCountInString(r.Command.V) > maxCommand {
		return cf.Unprocessable("Command must be between 1 and %d characters", maxCommand)
	}
	if r.Command.Set {
		p.Command = r.Command.V
	}
	if r.User.Set {
		if err := SetUser(p, r.User.V); err != nil {
			return err
		}
	}
	if err := r.HealthCheck.Apply(&p.HealthCheck, "Health check"); err != nil {
		return err
	}
	if err := r.ReadinessCheck.Apply(&p.ReadinessCheck, "Readiness health check"); err != nil {
		return err
	}
	return r.Metadata.Apply(&p.Metadata)
}

// SetUser sets whom a process runs as; "" is the lifecycle's user.
func SetUser(p *cf.Process, name string) error {
	p.User = strings.ToLower(name)
	return checkUser(p.User)
}

// ScaleProcess changes how much a process of an app has.
func ScaleProcess(c *control.Session, app *cf.App, p *cf.Process, req Scale) error {
	return ScaleAs(c, app, p, req, c.Asked)
}

// ScaleAs is ScaleProcess for a request that audit events show so.
func ScaleAs(c *control.Session, app *cf.App, p *cf.Process, req Scale, request audit.Data) error {
	if err := MayChange(c, p, app, noScale); err != nil {
		return err
	}
	if err := req.Apply(p); err != nil {
		return err
	}
	if err := SidecarFaults(p); err != nil {
		return cf.Unprocessable("The requested memory allocation is not large enough to run all of your sidecar processes")
	}
	if err := quota.Within(c, app.SpaceGUID, quota.Processes, func() error { return store.Processes.Update(c.Tx, p) }); err != nil {
		return err
	}
	return processEvent(c, audit.AppProcessScale, app, p, c.Request(request))
}
