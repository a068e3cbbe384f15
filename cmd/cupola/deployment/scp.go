package deployment

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pkg/sftp"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type scpCmd struct {
	capi.Flags
	Deployment string   `arg:"" help:"The deployment."`
	Paths      []string `arg:"" help:"Sources, and last the target: local paths, or GROUP[/INDEX|GUID]:PATH in instances. ((instance_id)) in a local target is the instance's GUID." placeholder:"PATH"`
	Recursive  bool     `help:"Copy directories with all that is in them." short:"r"`
	Process    string   `help:"Copy from or to the container of this process; by default, the first one." placeholder:"[JOB/]PROCESS"`
}

// place is one end of a copy.
type place struct {
	instance string // "" is this machine
	path     string
}

// placeOf reads a path of the command line. As with scp, one with a slash before the first
// colon is local, unless it is that of GROUP/INDEX.
func placeOf(text string) place {
	instance, path, remote := strings.Cut(text, ":")
	if !remote || instance == "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.Count(instance, "/") > 1 {
		return place{path: text}
	}
	if path == "" {
		path = "."
	}
	return place{instance, path}
}

// instanceID is replaced by an instance's GUID in the target of a download.
const instanceID = "((instance_id))"

// Run copies files from instances, or to them.
func (c *scpCmd) Run(e *command.Env) error {
	if len(c.Paths) < 2 {
		return errors.New("give a source and a target")
	}
	last := len(c.Paths) - 1
	target := placeOf(c.Paths[last])
	sources := make([]place, last)
	for n, text := range c.Paths[:last] {
		sources[n] = placeOf(text)
		if (sources[n].instance == "") == (target.instance == "") {
			return fmt.Errorf("either %s or %s has to be GROUP[/INDEX]:PATH, and the other a local path", text, c.Paths[last])
		}
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	to, err := findEntrance(e, api)
	if err != nil {
		return err
	}
	for _, source := range sources {
		if err := c.copy(e, to, source, target); err != nil {
			return err
		}
	}
	return nil
}

// copy copies between this machine and all instances that one end names.
func (c *scpCmd) copy(e *command.Env, to entrance, source, target place) error {
	download := target.instance == ""
	all, err := instancesOf(e, to.api, c.Deployment, source.instance+target.instance)
	if err != nil {
		return err
	}
	if download && len(all) > 1 && !strings.Contains(target.path, instanceID) {
		return fmt.Errorf("%d instances match %s: give one, or a target with %s in it", len(all), source.instance, instanceID)
	}
	for _, i := range all {
		err := withFiles(e, to, i, c.Process, func(files *sftp.Client) error {
			t := &transfer{e: e, files: files, recursive: c.Recursive}
			if download {
				return t.get(source.path, strings.ReplaceAll(target.path, instanceID, i.GUID))
			}
			return t.put(source.path, target.path)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", i.name(), err)
		}
	}
	return nil
}

// withFiles calls f with the files of a process' container.
func withFiles(e *command.Env, to entrance, i boshInstanceView, process string, f func(*sftp.Client) error) error {
	p, err := i.process(process)
	if err != nil {
		return err
	}
	client, err := to.enter(e, p)
	if err != nil {
		return err
	}
	defer client.Close()
	files, err := sftp.NewClient(client)
	if err != nil {
		return err
	}
	defer files.Close()
	return f(files)
}
