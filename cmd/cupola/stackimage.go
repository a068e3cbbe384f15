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

	"cupola/server"
)

type stackPullCmd struct {
	daemonFlags
	registryFlags
	Reference   string   `arg:"" help:"The image: docker://host/namespace/name:tag, without a host on Docker Hub; oci:DIR for an image layout."`
	Name        string   `help:"Also make it a stack of this name, which all apps may use." placeholder:"NAME"`
	Compat      string   `help:"Value of CF_STACK on that stack, for buildpacks that accept only certain stacks." placeholder:"STACK"`
	Fallback    []string `help:"Another reference of the same image, tried if the first one fails, also by later pulls and by apps that name the image; may be repeated, and they are tried in order." placeholder:"IMAGE" xor:"fallback"`
	Forget      bool     `help:"Forget earlier fallbacks." name:"no-fallback" xor:"fallback"`
	Username    string   `help:"Registry user." env:"CUPOLA_REGISTRY_USERNAME" placeholder:"USER"`
	Password    string   `help:"Registry password; prefer the environment variable." env:"CUPOLA_REGISTRY_PASSWORD,CF_DOCKER_PASSWORD" placeholder:"PASSWORD"`
	Credentials string   `help:"Users and passwords by registry, as JSON, also for fallbacks; prefer the environment variable." env:"CUPOLA_REGISTRY_CREDENTIALS" placeholder:"JSON"`
}

// Run pulls an image. Where a daemon runs, its flags for registries count.
func (c *stackPullCmd) Run(e *env) error {
	registries, err := c.registries()
	if err != nil {
		return err
	}
	if c.Compat != "" && c.Name == "" {
		return errors.New("--compat requires --name")
	}
	what, err := c.what()
	if err != nil {
		return err
	}
	return withStacksOf(e, server.Config{DataDir: c.DataDir, Registries: registries, Log: e.log}, func(s server.Stacks) error {
		p := newStackProgress(e)
		info, err := s.Pull(e.ctx, what, p.step)
		if err != nil || c.Name != "" {
			return p.end(c.daemonFlags, "Pulled", info, err)
		}
		p.clear()
		fmt.Fprintf(e.out, "Pulled %s in %.1f s: %s\n  digest           %s\n", info.Name, time.Since(p.started).Seconds(), bytesText(info.Bytes), info.Digest)
		return nil
	})
}

func (c *stackPullCmd) what() (server.StackPull, error) {
	p := server.StackPull{Reference: c.Reference, Name: c.Name, Compat: c.Compat, Username: c.Username, Password: c.Password, Fallbacks: c.Fallback}
	if c.Forget {
		p.Fallbacks = []string{}
	}
	if c.Credentials == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(c.Credentials), &p.Credentials); err != nil {
		return p, errors.New(`the credentials are not like {"registry.example.com": {"username": "u", "password": "p"}}`)
	}
	return p, nil
}

type stackExportCmd struct {
	daemonFlags
	Name string `arg:"" help:"The image: a reference, a digest, or the name of its stack."`
	Path string `arg:"" help:"The directory to create."`
}

// Run exports an image.
func (c *stackExportCmd) Run(e *env) error {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	return c.withKnownStacks(e, func(s server.Stacks) error {
		p := newStackProgress(e)
		info, err := s.Export(e.ctx, server.StackExport{Name: c.Name, Path: path}, p.step)
		p.clear()
		if err == nil {
			fmt.Fprintf(e.out, "Exported %s to %s.\n", info.Digest, path)
		}
		return err
	})
}

type stackGCCmd struct {
	daemonFlags
	OlderThan time.Duration `help:"Remove images that were unused for this long." placeholder:"168h"`
	MaxMB     int64         `help:"Remove the least recently used images until the rest fit in this many MiB." name:"max-mb" placeholder:"MB"`
	All       bool          `help:"Remove all unused images."`
}

// Run takes images away.
func (c *stackGCCmd) Run(e *env) error {
	if c.OlderThan <= 0 && c.MaxMB <= 0 && !c.All {
		return errors.New("no images selected: give --older-than, --max-mb or --all; images in use are always kept")
	}
	return c.withKnownStacks(e, func(s server.Stacks) error {
		r, err := s.GC(e.ctx, server.StackGC{OlderThan: c.OlderThan, MaxBytes: c.MaxMB << 20, All: c.All})
		if err != nil {
			return err
		}
		for _, i := range r.Images {
			fmt.Fprintf(e.out, "Removed %s (%s).\n", i.Reference, bytesText(i.DiskBytes))
		}
		fmt.Fprintf(e.out, "Removed %d images.\n", len(r.Images))
		return nil
	})
}

// writeImages lists images, if there are any.
func writeImages(w io.Writer, all []server.ImageInfo, width int) error {
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
