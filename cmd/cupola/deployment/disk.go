package deployment

import (
	"fmt"
	"io"
	"net/url"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type disksCmd struct {
	capi.Flags
	Orphaned bool `help:"List only orphaned disks, and when they will be deleted." short:"o"`
	JSON     bool `help:"Print JSON." name:"json"`
}

// diskView is a persistent disk as the API shows it.
type diskView struct {
	GUID       string    `json:"guid"`
	Deployment string    `json:"deployment"`
	Group      string    `json:"group"`
	Index      int       `json:"index"`
	SizeMB     int       `json:"size_mb"`
	Orphaned   bool      `json:"orphaned"`
	OrphanedAt time.Time `json:"orphaned_at"`
	DeletedAt  time.Time `json:"deleted_at"`
}

// Run lists the persistent disks of all deployments, and those of none.
func (c *disksCmd) Run(e *command.Env) error {
	path := "/v1/disks"
	if c.Orphaned {
		path += "?orphaned=true"
	}
	return printList(e, &c.Flags, path, c.JSON, "DISK\tDEPLOYMENT\tINSTANCE\tSIZE\tSTATE\tDELETED", func(w io.Writer, d diskView) {
		state := "attached"
		if d.Orphaned {
			state = "orphaned"
		}
		fmt.Fprintf(w, "%s\t%s\t%s/%d\t%d MB\t%s\t%s\n", d.GUID, d.Deployment, d.Group, d.Index, d.SizeMB, state, orNever(d.DeletedAt))
	})
}

// diskArg is the disk that a command is about.
type diskArg struct {
	capi.Flags
	GUID string `arg:"" name:"guid" help:"The disk's GUID, from disks."`
}

// call requests something of the disk, and says what was done.
func (c *diskArg) call(e *command.Env, method, verb string, body any, done string) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, method, "/v1/disks/"+url.PathEscape(c.GUID)+verb, body, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s\n", done)
	return err
}

type deleteDiskCmd struct{ diskArg }

// Run deletes a disk, with all that is on it.
func (c *deleteDiskCmd) Run(e *command.Env) error {
	return c.call(e, "DELETE", "", nil, "Deleted the disk "+c.GUID+".")
}

type orphanDiskCmd struct{ diskArg }

// Run orphans a disk; its instance gets an empty one.
func (c *orphanDiskCmd) Run(e *command.Env) error {
	return c.call(e, "POST", "/orphan", nil, "Orphaned the disk "+c.GUID+".")
}

type attachDiskCmd struct {
	boshOne
	Instance string `arg:"" help:"A stopped instance, like nats/0." placeholder:"GROUP/INDEX|GUID"`
	GUID     string `arg:"" name:"guid" help:"The GUID of an orphaned disk, from disks."`
}

// Run gives an instance an orphaned disk; the one that it has is orphaned.
func (c *attachDiskCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	named, err := instancesOf(e, api, c.Deployment, c.Instance)
	if err != nil {
		return err
	}
	if len(named) > 1 {
		return fmt.Errorf("a disk is for one instance, and %d match: give one, like %s", len(named), named[0].name())
	}
	request := capi.Doc{"deployment": c.Deployment, "group": named[0].Group, "index": named[0].Index}
	if err := api.Call(e.Ctx, "POST", "/v1/disks/"+url.PathEscape(c.GUID)+"/attach", request, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Attached the disk %s to %s.\n", c.GUID, named[0].name())
	return err
}
