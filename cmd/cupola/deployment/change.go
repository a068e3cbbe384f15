package deployment

import (
	"strconv"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// rolloutFlags say how instances are changed.
type rolloutFlags struct {
	SkipDrain   bool   `help:"Do not run pre-stop and drain scripts."`
	Canaries    string `help:"How many instances of a group to change first; overrides the manifest." placeholder:"NUMBER|PERCENT%"`
	MaxInFlight string `help:"How many instances of a group to change at once; overrides the manifest." placeholder:"NUMBER|PERCENT%"`
}

// doc adds the flags to a request.
func (f *rolloutFlags) doc(request capi.Doc) capi.Doc {
	request["skip_drain"], request["canaries"], request["max_in_flight"] = f.SkipDrain, f.Canaries, f.MaxInFlight
	return request
}

// changeFlags are those of commands that change instances.
type changeFlags struct {
	boshOne
	Instance string `arg:"" optional:"" help:"An instance group, or an instance like nats/0; all by default." placeholder:"GROUP[/INDEX|GUID]"`
	rolloutFlags
}

func (f *changeFlags) ask(e *command.Env, request capi.Doc) error {
	api, err := f.Login(e.Ctx)
	if err != nil {
		return err
	}
	if err := putInstance(e, api, f.Deployment, f.Instance, request); err != nil {
		return err
	}
	return ask(e, api, f.Deployment, f.doc(request))
}

// putInstance adds the instances that a user names to a request.
func putInstance(e *command.Env, api *capi.Client, deployment, instance string, request capi.Doc) error {
	s, err := parseSlug(instance)
	if err != nil || s.group == "" {
		return err
	}
	request["group"] = s.group
	if s.id == "" {
		return nil
	}
	n, err := strconv.Atoi(s.id)
	if err != nil || n < 0 { // a GUID
		named, err := instancesOf(e, api, deployment, instance)
		if err != nil {
			return err
		}
		n = named[0].Index
	}
	request["index"] = n
	return nil
}

type startCmd struct{ changeFlags }

// Run starts instances.
func (c *startCmd) Run(e *command.Env) error { return c.ask(e, capi.Doc{"kind": "start"}) }

type stopCmd struct {
	changeFlags
	Hard bool `help:"Delete the ephemeral disks, too; persistent disks stay."`
}

// Run stops instances; they stay stopped until they are started.
func (c *stopCmd) Run(e *command.Env) error {
	return c.ask(e, capi.Doc{"kind": "stop", "hard": c.Hard})
}

type restartCmd struct{ changeFlags }

// Run stops instances and starts them again.
func (c *restartCmd) Run(e *command.Env) error { return c.ask(e, capi.Doc{"kind": "restart"}) }

type recreateCmd struct {
	changeFlags
	VMsCreatedBefore time.Time `help:"Recreate only instances whose containers are older than a time, like 2026-01-31T12:00:00Z." name:"vms-created-before" placeholder:"TIME"`
	Fix              bool      `help:"Run no stop scripts on instances that have a process without a running container."`
}

// Run recreates instances; persistent disks stay.
func (c *recreateCmd) Run(e *command.Env) error {
	return c.ask(e, capi.Doc{"kind": "recreate", "fix": c.Fix, "created_before": c.VMsCreatedBefore})
}
