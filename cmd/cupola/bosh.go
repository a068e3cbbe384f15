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
	Render      boshRenderCmd      `cmd:"" help:"Print a manifest's deployment as Kubernetes objects."`
	Diff        boshDiffCmd        `cmd:"" help:"Show what a deploy would change; exit with 2 if there are changes."`
	List        boshListCmd        `cmd:"" aliases:"ls" help:"List the deployments."`
	Inspect     boshInspectCmd     `cmd:"" aliases:"manifest" help:"Print a deployment's manifest."`
	Instances   boshInstancesCmd   `cmd:"" aliases:"is" help:"List a deployment's instances: state, AZ and address."`
	Logs        boshLogsCmd        `cmd:"" help:"Show the logs of a deployment's processes and scripts."`
	RunErrand   boshErrandCmd      `cmd:"" help:"Run an errand."`
	Start       boshStartCmd       `cmd:"" help:"Start instances."`
	Stop        boshStopCmd        `cmd:"" help:"Stop instances; they stay stopped until 'start'."`
	Restart     boshRestartCmd     `cmd:"" help:"Restart instances."`
	Recreate    boshRecreateCmd    `cmd:"" help:"Recreate instances; persistent disks stay."`
	Variables   boshVariablesCmd   `cmd:"" help:"List a deployment's variables, without their values."`
	Delete      boshDeleteCmd      `cmd:"" aliases:"rm" help:"Delete a deployment; persistent disks stay by default."`
	Task        boshTaskCmd        `cmd:"" help:"Show a task, and follow it while it runs."`
	Tasks       boshTasksCmd       `cmd:"" help:"List recent tasks."`
	CancelTask  boshCancelCmd      `cmd:"" help:"Cancel a task; instances stay as they are until the next task."`
	Disks       boshDisksCmd       `cmd:"" help:"List the persistent disks."`
	DeleteDisk  boshDeleteDiskCmd  `cmd:"" help:"Delete an orphaned persistent disk."`
	Lint        boshLintCmd        `cmd:"" help:"Report all errors in a manifest. Needs no daemon."`
	Interpolate boshInterpolateCmd `cmd:"" aliases:"int" help:"Print a manifest with ops files and variables applied. Needs no daemon."`
}

type boshLintCmd struct {
	sourceFlags
	Lenient bool `help:"Report faults that BOSH accepts as warnings."`
	Strict  bool `help:"Reject unknown keys, and report ignored keys even if they are empty."`
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
	Path          string `help:"Print only the value at this ops-file path; a string is printed without quotes." placeholder:"PATH"`
	VarErrs       bool   `help:"Fail if a variable has no value."`
	VarErrsUnused bool   `help:"Fail if a value's variable is not used."`
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
