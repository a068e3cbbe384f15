package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"cupola/server/admin"
	"cupola/server/admin/stack"
	"cupola/server/images"
)

type stackPullCmd struct {
	daemonFlags
	images.Registries
	stack.PullRequest
	Forget          bool   `help:"Forget earlier fallbacks." name:"no-fallback" xor:"fallback"`
	CredentialsJSON string `name:"credentials" help:"Users and passwords by registry, as JSON, also for fallbacks; prefer the environment variable." env:"CUPOLA_REGISTRY_CREDENTIALS" placeholder:"JSON"`
}

// Run pulls an image. Where a daemon runs, its flags for registries count.
func (c *stackPullCmd) Run(e *env) error {
	if c.Compat != "" && c.Name == "" {
		return errors.New("--compat requires --name")
	}
	target := c.target(e)
	var err error
	if target.Registries, err = c.Registries.Open(); err != nil {
		return err
	}
	what, err := c.request()
	if err != nil {
		return err
	}
	p := newStackProgress(e)
	info, err := admin.StackPull.Do(e.ctx, target, what, p.step)
	if err != nil || c.Name != "" {
		return interrupted(e, p.end(c.daemonFlags, "Pulled", info, err))
	}
	p.clear()
	fmt.Fprintf(e.out, "Pulled %s in %.1f s: %s\n  digest           %s\n", info.Name, time.Since(p.started).Seconds(), bytesText(info.Bytes), info.Digest)
	return nil
}

func (c *stackPullCmd) request() (stack.PullRequest, error) {
	p := c.PullRequest
	if c.Forget {
		p.Fallbacks = []string{}
	}
	if c.CredentialsJSON == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(c.CredentialsJSON), &p.Credentials); err != nil {
		return p, errors.New(`the credentials are not like {"registry.example.com": {"username": "u", "password": "p"}}`)
	}
	return p, nil
}

type stackExportCmd struct {
	daemonFlags
	stack.ExportRequest
}

// Run exports an image.
func (c *stackExportCmd) Run(e *env) (err error) {
	in := c.ExportRequest
	if in.Path, err = filepath.Abs(c.Path); err != nil {
		return err
	}
	if err := c.known(); err != nil {
		return err
	}
	p := newStackProgress(e)
	info, err := admin.StackExport.Do(e.ctx, c.target(e), in, p.step)
	p.clear()
	if err != nil {
		return interrupted(e, err)
	}
	fmt.Fprintf(e.out, "Exported %s to %s.\n", info.Digest, in.Path)
	return nil
}

type stackGCCmd struct {
	daemonFlags
	stack.GCRequest
}

// Run removes images.
func (c *stackGCCmd) Run(e *env) error {
	if c.OlderThan <= 0 && c.MaxMB <= 0 && !c.All {
		return errors.New("no images selected: give --older-than, --max-mb or --all; images in use are always kept")
	}
	if err := c.known(); err != nil {
		return err
	}
	r, err := admin.StackGC.Do(e.ctx, c.target(e), c.GCRequest, nil)
	if err != nil {
		return interrupted(e, err)
	}
	for _, i := range r.Images {
		fmt.Fprintf(e.out, "Removed %s (%s).\n", i.Reference, bytesText(i.DiskBytes))
	}
	fmt.Fprintf(e.out, "Removed %d images.\n", len(r.Images))
	return nil
}

// writeImages lists images, if there are any.
func writeImages(w io.Writer, all []stack.ImageInfo, width int) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := table{width: width}
	t.add("IMAGE", "DIGEST", "SIZE", "USED", "NEEDED BY")
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
		t.add(i.Reference, fmt.Sprintf("%.19s", i.Digest), bytesText(i.DiskBytes), i.Used.Local().Format("2006-01-02 15:04"), cmp.Or(strings.Join(by, ", "), "-"))
	}
	return t.write(w)
}
