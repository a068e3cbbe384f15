package gitpush

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// startTime is how long a push waits for instances: the cf CLI's default
// (CF_STARTUP_TIMEOUT) for each of two starts, since a rolling deployment may begin
// while an earlier one ends.
const startTime = 10 * time.Minute

// start runs the app on a droplet: an app that runs gets a rolling deployment, any
// other is started.
func (p *push) start(ctx context.Context, droplet string) error {
	var app struct {
		State         string
		Relationships struct {
			Current struct{ Data *struct{ GUID string } } `json:"current_droplet"`
		}
	}
	path := "/v3/apps/" + p.app
	if err := p.client.call(ctx, "GET", path, nil, &app); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, errors.New("the app did not start in time: see cupola app why, or cf logs --recent"))
	defer cancel()
	log := p.follow(ctx, "", false)
	defer log.stop()
	var err error
	if app.State == "STARTED" && app.Relationships.Current.Data != nil {
		err = p.roll(ctx, droplet)
	} else {
		err = p.startFirst(ctx, path, droplet)
	}
	if err != nil {
		log.stop()
		for _, l := range log.last() {
			p.out.line("  %s", l)
		}
	}
	return err
}

// startFirst starts an app that does not run.
func (p *push) startFirst(ctx context.Context, path, droplet string) error {
	if err := p.client.call(ctx, "PATCH", path+"/relationships/current_droplet", toOne(droplet), nil); err != nil {
		return err
	}
	p.out.line("Starting ...")
	if err := p.client.call(ctx, "POST", path+"/actions/start", nil, nil); err != nil {
		return err
	}
	for {
		s, err := p.instances(ctx, path+"/processes/web")
		if err != nil {
			return err
		}
		if s.total == 0 || s.running > 0 {
			p.out.line("%d of %d instances run", s.running, s.total)
			return nil
		}
		if s.crashed == s.total {
			return fmt.Errorf("the app crashed: %s", s.why)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// roll replaces what an app runs. If all new instances crash it ends the deployment:
// the instances of before go on.
func (p *push) roll(ctx context.Context, droplet string) error {
	p.out.line("Replacing the instances ...")
	var d struct {
		GUID   string
		Status struct {
			Value, Reason string
			Details       struct{ Error string }
		}
		New []struct{ GUID string } `json:"new_processes"`
	}
	request := doc{"droplet": doc{"guid": droplet}, "strategy": "rolling", "relationships": doc{"app": toOne(p.app)}}
	if err := p.client.call(ctx, "POST", "/v3/deployments", request, &d); err != nil {
		return err
	}
	for d.Status.Value == "ACTIVE" {
		if len(d.New) > 0 {
			s, err := p.instances(ctx, "/v3/processes/"+d.New[0].GUID)
			if err == nil && s.total > 0 && s.crashed == s.total {
				return errors.Join(fmt.Errorf("the new instance crashed, and the app runs on as before: %s", s.why),
					p.client.call(ctx, "POST", "/v3/deployments/"+d.GUID+"/actions/cancel", nil, nil))
			}
		}
		if err := pause(ctx); err != nil {
			return err
		}
		if err := p.client.call(ctx, "GET", "/v3/deployments/"+d.GUID, nil, &d); err != nil {
			return err
		}
	}
	if d.Status.Reason != "DEPLOYED" {
		return fmt.Errorf("the deployment ended: %s %s", d.Status.Reason, d.Status.Details.Error)
	}
	p.out.line("All instances are replaced")
	return nil
}

// instances are those of a process, by state.
type instances struct {
	total, running, crashed int
	why                     string // one crashed, or cannot be placed
}

func (p *push) instances(ctx context.Context, process string) (s instances, err error) {
	var stats struct {
		Resources []struct{ State, Details string }
	}
	if err := p.client.call(ctx, "GET", process+"/stats", nil, &stats); err != nil {
		return s, err
	}
	for _, r := range stats.Resources {
		s.total++
		switch {
		case r.State == "RUNNING":
			s.running++
		case r.State == "CRASHED":
			s.crashed++
			s.why = r.Details
		case r.State == "DOWN" && r.Details != "":
			return s, fmt.Errorf("an instance cannot be placed: %s", r.Details)
		}
	}
	return s, nil
}
