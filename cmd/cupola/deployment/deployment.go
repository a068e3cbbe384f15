// Package deployment has the commands that deploy, manage and lint BOSH deployments.
package deployment

import (
	"fmt"
	"strings"

	"cupola/cmd/cupola/command"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

// Cmd is cupola deployment.
type Cmd struct {
	Deploy              deployCmd              `cmd:"" help:"Deploy a manifest on this machine, or to a Kubernetes cluster."`
	Render              renderCmd              `cmd:"" help:"Print a manifest's deployment as Kubernetes objects."`
	Diff                diffCmd                `cmd:"" help:"Show what a deploy would change; exit with 2 if there are changes."`
	List                listCmd                `cmd:"" aliases:"ls" help:"List the deployments."`
	Inspect             inspectCmd             `cmd:"" aliases:"manifest" help:"Print a deployment's manifest."`
	Instances           instancesCmd           `cmd:"" aliases:"is" help:"List a deployment's instances: state, AZ and address."`
	VMs                 vmsCmd                 `cmd:"" name:"vms" help:"List the instances that have containers."`
	Repair              repairCmd              `cmd:"" aliases:"cck,cloud-check" help:"List what is wrong with a deployment's instances and disks, and mend it."`
	Logs                logsCmd                `cmd:"" help:"Show the logs of a deployment's processes and scripts, or download its log files."`
	SSH                 sshCmd                 `cmd:"" name:"ssh" help:"Open a shell in an instance, or run a command in several."`
	SCP                 scpCmd                 `cmd:"" name:"scp" help:"Copy files from instances, or to them."`
	Errands             errandsCmd             `cmd:"" help:"List a deployment's errands."`
	RunErrand           errandCmd              `cmd:"" help:"Run an errand, and print its output."`
	Start               startCmd               `cmd:"" help:"Start instances."`
	Stop                stopCmd                `cmd:"" help:"Stop instances; they stay stopped until 'start'."`
	Restart             restartCmd             `cmd:"" help:"Restart instances."`
	Recreate            recreateCmd            `cmd:"" help:"Recreate instances; persistent disks stay."`
	Variables           variablesCmd           `cmd:"" help:"List a deployment's variables, without their values."`
	Delete              deleteCmd              `cmd:"" aliases:"rm" help:"Delete a deployment; persistent disks stay by default."`
	Task                taskCmd                `cmd:"" help:"Show a task, and follow it while it runs. With --debug, print what its deployment logged meanwhile."`
	Tasks               tasksCmd               `cmd:"" help:"List the tasks that have not ended, or the last ones."`
	Locks               locksCmd               `cmd:"" help:"List the deployments that a task is changing."`
	Events              eventsCmd              `cmd:"" help:"List what was done to deployments, by whom."`
	CancelTask          cancelCmd              `cmd:"" help:"Cancel a task; instances stay as they are until the next task."`
	Disks               disksCmd               `cmd:"" help:"List the persistent disks."`
	AttachDisk          attachDiskCmd          `cmd:"" help:"Give a stopped instance an orphaned disk."`
	OrphanDisk          orphanDiskCmd          `cmd:"" help:"Orphan a stopped instance's disk; it gets an empty one."`
	DeleteDisk          deleteDiskCmd          `cmd:"" help:"Delete an orphaned persistent disk."`
	UploadRelease       uploadReleaseCmd       `cmd:"" help:"Upload a BOSH release."`
	Releases            releasesCmd            `cmd:"" help:"List the uploaded releases."`
	InspectRelease      inspectReleaseCmd      `cmd:"" help:"Show a release's jobs and packages."`
	ExportRelease       exportReleaseCmd       `cmd:"" help:"Compile a release of a deployment, and download it as a tarball."`
	DeleteRelease       deleteReleaseCmd       `cmd:"" help:"Delete a release that no deployment uses, with its compiled packages."`
	Configs             configsCmd             `cmd:"" help:"List the configs that apply to all deployments."`
	Config              configCmd              `cmd:"" help:"Print a config."`
	UpdateConfig        updateConfigCmd        `cmd:"" help:"Update a config, and show what changes in it."`
	DeleteConfig        deleteConfigCmd        `cmd:"" help:"Delete a config."`
	DiffConfig          diffConfigCmd          `cmd:"" help:"Compare two configs; exit with 2 if they differ."`
	CloudConfig         cloudConfigCmd         `cmd:"" help:"Print a cloud-config."`
	UpdateCloudConfig   updateCloudConfigCmd   `cmd:"" help:"Update a cloud-config: AZs, VM types, disk types and networks."`
	RuntimeConfig       runtimeConfigCmd       `cmd:"" help:"Print a runtime-config."`
	UpdateRuntimeConfig updateRuntimeConfigCmd `cmd:"" help:"Update a runtime-config: addons and their releases, variables and tags of all deployments."`
	Lint                lintCmd                `cmd:"" help:"Report all errors in a manifest. Needs no daemon."`
	Interpolate         interpolateCmd         `cmd:"" aliases:"int" help:"Print a manifest with ops files and variables applied. Needs no daemon."`
}

type lintCmd struct {
	sourceFlags
	configFlags
	Lenient bool `help:"Report faults that BOSH accepts as warnings."`
	Strict  bool `help:"Reject unknown keys, and report ignored keys even if they are empty."`
	JSON    bool `help:"Print JSON." name:"json"`
}

// Run tells what is wrong: errors and warnings to standard error, the worst
// first. It fails if there are errors.
func (c *lintCmd) Run(e *command.Env) error {
	s, err := c.source(e.Ctx)
	if err != nil {
		return err
	}
	configs, err := c.configs(e.Ctx)
	if err != nil {
		return err
	}
	_, found, err := deployable(s, configs, manifest.Options{Lenient: c.Lenient, Strict: c.Strict})
	if err != nil {
		return err
	}
	if c.JSON {
		if found == nil {
			found = manifest.Findings{}
		}
		err = command.WriteJSON(e.Out, found)
	} else {
		err = writeFindings(e, c.Manifest, found)
	}
	if err == nil && found.Count(manifest.Error) > 0 {
		return command.ExitCode(1)
	}
	return err
}

// writeFindings prints findings, one a line, and how many there are.
func writeFindings(e *command.Env, name string, found manifest.Findings) error {
	for _, f := range found {
		w := e.Err
		if f.Level == manifest.Info {
			w = e.Out
		}
		line := ""
		if f.Line > 0 {
			line = fmt.Sprintf(" (line %d)", f.Line)
		}
		fmt.Fprintf(w, "%-7s %s%s\n", f.Level, strings.Map(command.Printed, f.String()), line)
	}
	_, err := fmt.Fprintf(e.Out, "%s: %s, %s\n", name, command.Counted(found.Count(manifest.Error), "error"), command.Counted(found.Count(manifest.Warning), "warning"))
	return err
}

type interpolateCmd struct {
	sourceFlags
	Path          string `help:"Print only the value at this ops-file path; a string is printed without quotes." placeholder:"PATH"`
	VarErrs       bool   `help:"Fail if a variable has no value."`
	VarErrsUnused bool   `help:"Fail if a value's variable is not used."`
}

// Run prints the manifest.
func (c *interpolateCmd) Run(e *command.Env) error {
	if err := ops.CheckPath(c.Path); err != nil {
		return fmt.Errorf("--path: %w", err)
	}
	s, err := c.source(e.Ctx)
	if err != nil {
		return err
	}
	root, report, err := s.Tree()
	if err == nil {
		err = interpolate.Undeclare(root, s.Values, report).Check(c.VarErrs, c.VarErrsUnused)
	}
	if err != nil {
		return err
	}
	if root, err = ops.Find(root, c.Path); err != nil {
		return err
	}
	if text, ok := tree.Value(root).(string); ok && c.Path != "" {
		_, err = fmt.Fprintln(e.Out, text)
		return err
	}
	text, err := tree.Write(root)
	if err == nil {
		_, err = e.Out.Write(text)
	}
	return err
}
