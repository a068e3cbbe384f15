package stacks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/stack"
	"cupola/server/images"
)

type pullCmd struct {
	command.DaemonFlags
	images.Registries
	stack.PullRequest
	Forget          bool   `help:"Forget earlier fallbacks." name:"no-fallback" xor:"fallback"`
	CredentialsJSON string `name:"credentials" help:"Users and passwords by registry, as JSON, also for fallbacks; prefer the environment variable." env:"CUPOLA_REGISTRY_CREDENTIALS" placeholder:"JSON"`
}

// Run pulls an image. Where a daemon runs, its flags for registries count.
func (c *pullCmd) Run(e *command.Env) error {
	if c.Compat != "" && c.Name == "" {
		return errors.New("--compat requires --name")
	}
	target := c.Target(e)
	var err error
	if target.Registries, err = c.Registries.Open(); err != nil {
		return err
	}
	what, err := c.request()
	if err != nil {
		return err
	}
	p := command.NewProgress(e)
	info, err := admin.StackPull.Do(e.Ctx, target, what, p.Step)
	if err != nil || c.Name != "" {
		return command.Interrupted(e, finish(p, c.DaemonFlags, "Pulled", info, err))
	}
	p.Clear()
	fmt.Fprintf(e.Out, "Pulled %s in %.1f s: %s\n  digest           %s\n", info.Name, time.Since(p.Started).Seconds(), command.BytesText(info.Bytes), info.Digest)
	return nil
}

func (c *pullCmd) request() (p stack.PullRequest, err error) {
	p = c.PullRequest
	if c.Forget {
		p.Fallbacks = []string{}
	}
	p.Credentials, err = parseCredentials(c.CredentialsJSON)
	return p, err
}

type exportCmd struct {
	command.DaemonFlags
	stack.ExportRequest
}

// Run exports an image.
func (c *exportCmd) Run(e *command.Env) (err error) {
	in := c.ExportRequest
	if in.Path, err = filepath.Abs(c.Path); err != nil {
		return err
	}
	if err := c.Known(); err != nil {
		return err
	}
	p := command.NewProgress(e)
	info, err := admin.StackExport.Do(e.Ctx, c.Target(e), in, p.Step)
	p.Clear()
	if err != nil {
		return command.Interrupted(e, err)
	}
	fmt.Fprintf(e.Out, "Exported %s to %s.\n", cmp.Or(info.Digest, info.Name), in.Path)
	return nil
}

type gcCmd struct {
	command.DaemonFlags
	stack.GCRequest
}

// Run removes images.
func (c *gcCmd) Run(e *command.Env) error {
	if c.OlderThan <= 0 && c.MaxMB <= 0 && !c.All {
		return errors.New("no images selected: give --older-than, --max-mb or --all; images in use are always kept")
	}
	if err := c.Known(); err != nil {
		return err
	}
	r, err := admin.StackGC.Do(e.Ctx, c.Target(e), c.GCRequest, nil)
	if err != nil {
		return command.Interrupted(e, err)
	}
	did := "Removed"
	if c.DryRun {
		did = "Would remove"
	}
	for _, i := range r.Images {
		fmt.Fprintf(e.Out, "%s %s (%s).\n", did, i.Reference, command.BytesText(i.DiskBytes))
	}
	fmt.Fprintf(e.Out, "%s %d images.\n", did, len(r.Images))
	return nil
}

// writeImages lists images, if there are any.
func writeImages(w io.Writer, all []stack.ImageInfo, width int) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := command.Table{Width: width}
	t.Add("IMAGE", "DIGEST", "SIZE", "USED", "NEEDED BY")
	for _, i := range all {
		var by []string
		if i.Pinned {
			by = append(by, "apps")
		}
		if i.Mounted {
			by = append(by, "containers")
		}
		if len(i.Stacks) > 0 {
			by = append(by, "stack "+strings.Join(i.Stacks, ", "))
		}
		t.Add(i.Reference, fmt.Sprintf("%.19s", i.Digest), command.BytesText(i.DiskBytes), i.Used.Local().Format("2006-01-02 15:04"), cmp.Or(strings.Join(by, ", "), "-"))
	}
	return t.Write(w)
}
