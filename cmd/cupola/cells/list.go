package cells

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// Cmd is cupola cells.
type Cmd struct {
	List listCmd `cmd:"" default:"withargs" help:"List the cells: tags, root filesystems, memory, disk and containers."`
	Move moveCmd `cmd:"" help:"Move the apps of a space, or one of them, to a cell, each by a rolling deployment."`
}

type listCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// cellView is a cell as GET /v1/cells shows it.
type cellView struct {
	ID          string   `json:"cell_id"`
	Tags        []string `json:"tags"`
	Required    []string `json:"required_tags"`
	RootFSes    []string `json:"preloaded_rootfses"`
	Providers   []string `json:"rootfs_providers"`
	Capacity    cellRoom `json:"capacity"`
	Used        cellRoom `json:"used"`
	Leaving     bool     `json:"leaving"`
	Unreachable bool     `json:"unreachable"`
	Problem     string   `json:"problem"` // "" of none
	Mend        string   `json:"mend"`
}

type cellRoom struct {
	MemoryMB   int `json:"memory_mb"`
	DiskMB     int `json:"disk_mb"`
	Containers int `json:"containers"`
}

// Run lists the cells.
func (c *listCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	var cells []cellView
	if err := api.Call(e.Ctx, "GET", "/v1/cells", nil, &cells); err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, cells)
	}
	return writeCells(e.Out, cells)
}

func writeCells(w io.Writer, cells []cellView) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tTAGS\tROOTFSES\tPROVIDERS\tMEMORY\tDISK\tCONTAINERS")
	for _, c := range cells {
		name := c.ID
		if c.Leaving {
			name += " (leaving)"
		}
		if c.Unreachable {
			name += " (unreachable)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, listText(c.Tags), listText(c.RootFSes), listText(c.Providers),
			partText(c.Used.MemoryMB, c.Capacity.MemoryMB, sizeText), partText(c.Used.DiskMB, c.Capacity.DiskMB, sizeText),
			partText(c.Used.Containers, c.Capacity.Containers, func(n int) string { return fmt.Sprint(n) }))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range cells {
		if c.Problem != "" {
			fmt.Fprintf(w, "\n%s: %s\n  %s\n", c.ID, c.Problem, c.Mend)
		}
	}
	return nil
}

func listText(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// partText is used/total; an evacuating cell has no total.
func partText(used, total int, text func(int) string) string {
	if total == 0 {
		return text(used)
	}
	return text(used) + "/" + text(total)
}

// sizeText is a size in the CLI's units.
func sizeText(mb int) string {
	if mb >= 1024 && mb%1024 == 0 {
		return fmt.Sprintf("%dG", mb/1024)
	}
	return fmt.Sprintf("%dM", mb)
}
