package main

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

type boshCmd struct {
	Deploy      boshDeployCmd      `cmd:"" help:"Deploy a manifest on this machine, or to a Kubernetes cluster."`
	Render      boshRenderCmd      `cmd:"" help:"Write a manifest's deployment as Kubernetes objects."`
	Diff        boshDiffCmd        `cmd:"" help:"Show what a deploy would change; exit with 2 when there is something."`
	List        boshListCmd        `cmd:"" aliases:"ls" help:"List the deployments."`
	Inspect     boshInspectCmd     `cmd:"" aliases:"manifest" help:"Print the manifest of a deployment."`
	Instances   boshInstancesCmd   `cmd:"" aliases:"is" help:"List the instances of a deployment: what runs, and where."`
	Logs        boshLogsCmd        `cmd:"" help:"Show what the processes and scripts of a deployment write."`
	RunErrand   boshErrandCmd      `cmd:"" help:"Run an errand."`
	Start       boshStartCmd       `cmd:"" help:"Start instances."`
	Stop        boshStopCmd        `cmd:"" help:"Stop instances, until they are started again."`
	Restart     boshRestartCmd     `cmd:"" help:"Stop instances and start them again."`
	Recreate    boshRecreateCmd    `cmd:"" help:"Make instances anew; persistent disks stay."`
	Variables   boshVariablesCmd   `cmd:"" help:"List the variables of a deployment, without their values."`
	Delete      boshDeleteCmd      `cmd:"" aliases:"rm" help:"Delete a deployment; persistent disks stay unless told otherwise."`
	Task        boshTaskCmd        `cmd:"" help:"Show a task, and follow it if it has not ended."`
	Tasks       boshTasksCmd       `cmd:"" help:"List the last tasks."`
	CancelTask  boshCancelCmd      `cmd:"" help:"End a task; what it was changing stays as it is until the next one."`
	Disks       boshDisksCmd       `cmd:"" help:"List the persistent disks."`
	DeleteDisk  boshDeleteDiskCmd  `cmd:"" help:"Delete a persistent disk that is no instance's."`
	Lint        boshLintCmd        `cmd:"" help:"Tell all that is wrong with a manifest. Needs no daemon."`
	Interpolate boshInterpolateCmd `cmd:"" aliases:"int" help:"Print a manifest with its ops and variables in it. Needs no daemon."`
}

type boshLintCmd struct {
	sourceFlags
	Lenient bool `help:"Only warn of what BOSH itself would deploy."`
	Strict  bool `help:"Refuse unknown keys, and tell of keys without effect when they are empty too."`
	JSON    bool `help:"Print JSON." name:"json"`
}

// Run tells what is wrong: errors and warnings to standard error, the worst
// first. It fails if there are errors.
func (c *boshLintCmd) Run(e *env) error {
	s, err := c.source(e.ctx)
	if err != nil {
		return err
	}
	root, _, err := s.Tree()
	if err != nil {
		return err
	}
	o := manifest.Options{Lenient: c.Lenient, Strict: c.Strict}
	m, found := manifest.Decode(root)
	found = append(found.Graded(o), manifest.Lint(m, o)...)
	found.Sort()
	if c.JSON {
		if found == nil {
			found = manifest.Findings{}
		}
		err = writeJSON(e.out, found)
	} else {
		err = writeFindings(e, c.Manifest, found)
	}
	if err == nil && found.Count(manifest.Error) > 0 {
		return exitCode(1)
	}
	return err
}

// writeFindings prints findings, one a line, and how many there are.
func writeFindings(e *env, name string, found manifest.Findings) error {
	for _, f := range found {
		w := e.err
		if f.Level == manifest.Info {
			w = e.out
		}
		line := ""
		if f.Line > 0 {
			line = fmt.Sprintf(" (line %d)", f.Line)
		}
		fmt.Fprintf(w, "%-7s %s%s\n", f.Level, strings.Map(printed, f.String()), line)
	}
	_, err := fmt.Fprintf(e.out, "%s: %s, %s\n", name, counted(found.Count(manifest.Error), "error"), counted(found.Count(manifest.Warning), "warning"))
	return err
}

type boshInterpolateCmd struct {
	sourceFlags
	Path          string `help:"Print only what a path of ops files leads to; text as it is." placeholder:"PATH"`
	VarErrs       bool   `help:"Fail if a variable has no value."`
	VarErrsUnused bool   `help:"Fail if a value is of no variable."`
}

// Run prints the manifest.
func (c *boshInterpolateCmd) Run(e *env) error {
	s, err := c.source(e.ctx)
	if err != nil {
		return err
	}
	root, report, err := s.Tree()
	if err == nil {
		err = c.check(report)
	}
	if err != nil {
		return err
	}
	if root, err = ops.Find(root, c.Path); err != nil {
		return fmt.Errorf("--path %s: %w", c.Path, err)
	}
	if c.Path != "" && root.Kind == yaml.ScalarNode && root.ShortTag() == "!!str" {
		_, err = fmt.Fprintln(e.out, strings.TrimSuffix(root.Value, "\n"))
		return err
	}
	text, err := tree.Write(root)
	if err == nil {
		_, err = e.out.Write(text)
	}
	return err
}

// check fails in the bosh CLI's words.
func (c *boshInterpolateCmd) check(r interpolate.Report) error {
	var faults []string
	if c.VarErrs && len(r.Missing) > 0 {
		faults = append(faults, "Expected to find variables: "+strings.Join(r.Missing, ", "))
	}
	if c.VarErrsUnused && len(r.Unused) > 0 {
		faults = append(faults, "Expected to use variables: "+strings.Join(r.Unused, ", "))
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(faults, "\n"))
}
