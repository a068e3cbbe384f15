// Package deployment has the commands that deploy, manage and lint BOSH deployments.
package deployment

import (
	"fmt"

	"cupola/cmd/cupola/command"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

// Cmd is cupola deployment.
type Cmd struct {
	Deploy              deployCmd              `cmd:"" group:"Deployments" help:"Deploy a manifest on this machine, or to a Kubernetes cluster."`
	Render              renderCmd              `cmd:"" group:"Manifests" help:"Print a manifest's deployment as Kubernetes objects."`
	Diff                diffCmd                `cmd:"" group:"Manifests" help:"Show what a deploy would change; exit with 2 if there are changes."`
	List                listCmd                `cmd:"" group:"Deployments" aliases:"ls" help:"List the deployments."`
	Inspect             inspectCmd             `cmd:"" group:"Deployments" aliases:"manifest" help:"Print a deployment's manifest."`
	Instances           instancesCmd           `cmd:"" group:"Instances" aliases:"is" help:"List a deployment's instances: state, AZ and address."`
	VMs                 vmsCmd                 `cmd:"" group:"Instances" name:"vms" help:"List the instances that have containers."`
	Repair              repairCmd              `cmd:"" group:"Instances" aliases:"cck,cloud-check" help:"List what is wrong with a deployment's instances and disks, and mend it."`
	Logs                logsCmd                `cmd:"" group:"Instances" help:"Show the logs of a deployment's processes and scripts, or download its log files."`
	SSH                 sshCmd                 `cmd:"" group:"Instances" name:"ssh" help:"Open a shell in an instance, or run a command in several."`
	SCP                 scpCmd                 `cmd:"" group:"Instances" name:"scp" help:"Copy files from instances, or to them."`
	Errands             errandsCmd             `cmd:"" group:"Instances" help:"List a deployment's errands."`
	RunErrand           errandCmd              `cmd:"" group:"Instances" help:"Run an errand, and print its output."`
	Start               startCmd               `cmd:"" group:"Instances" help:"Start instances."`
	Stop                stopCmd                `cmd:"" group:"Instances" help:"Stop instances; they stay stopped until 'start'."`
	Restart             restartCmd             `cmd:"" group:"Instances" help:"Restart instances."`
	Recreate            recreateCmd            `cmd:"" group:"Instances" help:"Recreate instances; persistent disks stay."`
	Variables           variablesCmd           `cmd:"" group:"Deployments" help:"List a deployment's variables, without their values."`
	Delete              deleteCmd              `cmd:"" group:"Deployments" aliases:"rm" help:"Delete a deployment; persistent disks stay by default."`
	Task                taskCmd                `cmd:"" group:"Tasks" help:"Show a task, and follow it while it runs. With --debug, print what its deployment logged meanwhile."`
	Tasks               tasksCmd               `cmd:"" group:"Tasks" help:"List the tasks that have not ended, or the last ones."`
	Locks               locksCmd               `cmd:"" group:"Tasks" help:"List the deployments that a task is changing."`
	Events              eventsCmd              `cmd:"" group:"Tasks" help:"List what was done to deployments, by whom."`
	CancelTask          cancelCmd              `cmd:"" group:"Tasks" help:"Cancel a task; instances stay as they are until the next task."`
	Disks               disksCmd               `cmd:"" group:"Persistent disks" help:"List the persistent disks."`
	AttachDisk          attachDiskCmd          `cmd:"" group:"Persistent disks" help:"Give a stopped instance an orphaned disk."`
	OrphanDisk          orphanDiskCmd          `cmd:"" group:"Persistent disks" help:"Orphan a stopped instance's disk; it gets an empty one."`
	DeleteDisk          deleteDiskCmd          `cmd:"" group:"Persistent disks" help:"Delete an orphaned persistent disk."`
	UploadRelease       uploadReleaseCmd       `cmd:"" group:"Releases" help:"Upload a BOSH release."`
	Releases            releasesCmd            `cmd:"" group:"Releases" help:"List the uploaded releases."`
	InspectRelease      inspectReleaseCmd      `cmd:"" group:"Releases" help:"Show a release's jobs and packages."`
	ExportRelease       exportReleaseCmd       `cmd:"" group:"Releases" help:"Compile a release of a deployment, and download it as a tarball."`
	DeleteRelease       deleteReleaseCmd       `cmd:"" group:"Releases" help:"Delete a release that no deployment uses, with its compiled packages."`
	Configs             configsCmd             `cmd:"" group:"Configs" help:"List the configs that apply to all deployments."`
	Config              configCmd              `cmd:"" group:"Configs" help:"Print a config."`
	UpdateConfig        updateConfigCmd        `cmd:"" group:"Configs" help:"Update a config, and show what changes in it."`
	DeleteConfig        deleteConfigCmd        `cmd:"" group:"Configs" help:"Delete a config."`
	DiffConfig          diffConfigCmd          `cmd:"" group:"Configs" help:"Compare two configs; exit with 2 if they differ."`
	CloudConfig         cloudConfigCmd         `cmd:"" group:"Configs" help:"Print a cloud-config."`
	UpdateCloudConfig   updateCloudConfigCmd   `cmd:"" group:"Configs" help:"Update a cloud-config: AZs, VM types, disk types and networks."`
	RuntimeConfig       runtimeConfigCmd       `cmd:"" group:"Configs" help:"Print a runtime-config."`
	UpdateRuntimeConfig updateRuntimeConfigCmd `cmd:"" group:"Configs" help:"Update a runtime-config: addons and their releases, variables and tags of all deployments."`
	Lint                lintCmd                `cmd:"" group:"Manifests" help:"Report all errors in a manifest. Needs no daemon."`
	Interpolate         interpolateCmd         `cmd:"" group:"Manifests" aliases:"int" help:"Print a manifest with ops files and variables applied. Needs no daemon."`
}

type lintCmd struct {
	sourceFlags
	configFlags
	Lenient bool `help:"Report faults that BOSH accepts as warnings."`
	Strict  bool `help:"Reject unknown keys, and report ignored keys even if they are empty."`
	JSON    bool `help:"Print JSON." name:"json"`
}

// Run reports what is wrong: errors and warnings to standard error, the worst
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
		fmt.Fprintf(w, "%-7s %s%s\n", f.Level, command.Printable(f.String()), line)
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
		report, err = interpolate.Undeclare(root, s.Values, report)
	}
	if err == nil {
		err = report.Check(c.VarErrs, c.VarErrsUnused)
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
