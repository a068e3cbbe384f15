package machine

import (
	"fmt"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/disk"
)

// DiskCmd is cupola disk.
type DiskCmd struct {
	List    diskListCmd    `cmd:"" default:"withargs"`
	Reclaim diskReclaimCmd `cmd:""`
}

type diskListCmd struct {
	command.DaemonFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists what takes room.
func (c *diskListCmd) Run(e *command.Env) error {
	if err := c.Known(); err != nil {
		return err
	}
	u, err := admin.DiskList.Do(e.Ctx, c.Target(e), admin.None{}, nil)
	if err != nil {
		return command.Interrupted(e, err)
	}
	if c.JSON {
		return command.WriteJSON(e.Out, u)
	}
	t := command.Table{Width: command.Width(e)}
	t.Add("WHAT", "SIZE", "RECLAIMABLE", "NOTE")
	all := disk.Area{Name: "all"}
	for _, a := range u.Areas {
		all.Bytes, all.Reclaimable = all.Bytes+a.Bytes, all.Reclaimable+a.Reclaimable
		if a.Bytes > 0 {
			t.Add(a.Name, command.BytesText(a.Bytes), reclaimableText(a), e.Called(a.Note))
		}
	}
	t.Add(all.Name, command.BytesText(all.Bytes), reclaimableText(all), "")
	if err := t.Write(e.Out); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "\n%s of %s are free on the disk of %s.", bytesText(u.Free), bytesText(u.Total), u.Path)
	if u.LowWater > 0 {
		fmt.Fprintf(e.Out, " Below %s the daemon deletes caches.", bytesText(u.LowWater))
	}
	_, err = fmt.Fprintln(e.Out)
	return err
}

func reclaimableText(a disk.Area) string {
	if a.Reclaimable == 0 {
		return "-"
	}
	return command.BytesText(a.Reclaimable)
}

type diskReclaimCmd struct {
	command.DaemonFlags
	disk.ReclaimRequest
	JSON bool `help:"Print JSON." name:"json"`
}

// Run deletes caches.
func (c *diskReclaimCmd) Run(e *command.Env) error {
	if err := c.Known(); err != nil {
		return err
	}
	all, err := admin.DiskReclaim.Do(e.Ctx, c.Target(e), c.ReclaimRequest, nil)
	if err != nil {
		return command.Interrupted(e, err)
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(e.Out, "Nothing to reclaim: all that takes room is in use.")
		return err
	}
	verb := "deleted"
	if c.DryRun {
		verb = "would be deleted"
	}
	t := command.Table{Width: command.Width(e)}
	t.Add("WHAT", "COUNT", "SIZE", "LAST USED")
	sum := int64(0)
	for _, r := range all {
		sum += r.Bytes
		t.Add(r.Name, fmt.Sprint(r.Count), command.BytesText(r.Bytes), command.When(r.Oldest)+" to "+command.When(r.Newest))
	}
	if err := t.Write(e.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "\n%s %s.\n", command.BytesText(sum), verb)
	return err
}
