package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/databroker"
)

// ServicesCmd is cupola services.
type ServicesCmd struct {
	Backup       backupCmd   `cmd:"" help:"Back up a service instance of the built-in broker."`
	Backups      backupsCmd  `cmd:"" help:"List the backups of a service instance."`
	Points       pointsCmd   `cmd:"" help:"Show the points in time that a service instance of the services postgres or redis can be restored to."`
	Restore      restoreCmd  `cmd:"" help:"Restore a backup, into its service instance or another one, or a point in time, or from a backup of everything, into a new one."`
	Download     downloadCmd `cmd:"" help:"Download a backup: a file for pg_restore or redis-server, or a tar of the directory."`
	DeleteBackup deleteCmd   `cmd:"" help:"Delete a backup."`
	Logs         logsCmd     `cmd:"" help:"Print the log of a service instance."`
	Mails        mailsCmd    `cmd:"" help:"List the mails that apps sent to a service instance of the service smtp, or show one."`
}

// instanceFlags name a service instance.
type instanceFlags struct {
	capi.Flags
	capi.Place
	Instance string `arg:"" help:"The service instance's name."`
}

// find gives the client and the GUID of the service instance.
func (f *instanceFlags) find(ctx context.Context) (c *capi.Client, guid string, err error) {
	if c, err = f.Login(ctx); err != nil {
		return nil, "", err
	}
	guid, err = f.Find(ctx, c, "service instance", "service_instances", f.Instance)
	return c, guid, err
}

// serviceBackup is a backup as the API shows it.
type serviceBackup struct {
	GUID, State, Reason, Version string
	Size                         int64
	CreatedAt                    time.Time `json:"created_at"`
}

func path(instance string) string { return "/v1/service_instances/" + instance }

type backupCmd struct{ instanceFlags }

// Run makes a backup.
func (b *backupCmd) Run(e *command.Env) error {
	c, guid, err := b.find(e.Ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Backing up service instance %s...\n", b.Instance)
	var made serviceBackup
	if err := c.Begin(e.Ctx, http.MethodPost, path(guid)+"/backups", nil, &made); err != nil {
		return err
	}
	if err := c.Call(e.Ctx, http.MethodGet, "/v1/service_backups/"+made.GUID, nil, &made); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "OK\n\nThe backup %s has %s.\n", made.GUID, command.BytesText(made.Size))
	return nil
}

type backupsCmd struct{ instanceFlags }

// Run lists the backups of a service instance.
func (b *backupsCmd) Run(e *command.Env) error {
	c, guid, err := b.find(e.Ctx)
	if err != nil {
		return err
	}
	all, err := capi.List[serviceBackup](e.Ctx, c, path(guid)+"/backups?order_by=-created_at")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintf(e.Out, "There are no backups of %s: make one with 'cupola services backup %s'\n", b.Instance, b.Instance)
		return nil
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "BACKUP\tCREATED\tSTATE\tSIZE\tVERSION\tREASON")
	for _, one := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", one.GUID, command.When(one.CreatedAt), one.State, command.BytesText(one.Size), one.Version, one.Reason)
	}
	return t.Flush()
}

type restoreCmd struct {
	instanceFlags
	Backup string `arg:"" optional:"" help:"The backup, as 'cupola services backups' lists it; with --from ADDRESS, as 'cupola backups list' does, by default latest."`
	From   string `help:"Restore from a backup of everything instead: a file that 'cupola backup' wrote, or an address that --backup-to has. For root, on the daemon's machine." placeholder:"FILE|ADDRESS"`

	Identity string `help:"With --from ADDRESS: the file that 'cupola backups key' made, or another one of age's identities." type:"existingfile" placeholder:"FILE"`

	To    time.Time `help:"Restore what the database had at this time instead, like 2026-11-28T10:00:00Z; 'cupola services points' shows which ones there are." placeholder:"TIME"`
	New   string    `help:"Create a service instance with this name and the same plan, and restore into that one." placeholder:"NAME"`
	Force bool      `help:"Do not ask for confirmation." short:"f"`
}

// Run restores a backup.
func (r *restoreCmd) Run(e *command.Env) error {
	if r.From != "" {
		return r.restoreFrom(e)
	}
	switch {
	case r.Identity != "":
		return errors.New("--identity opens the backups at an address: give --from and the address")
	case (r.Backup == "") == r.To.IsZero():
		return errors.New("nothing to restore: give a backup, or --to and a time")
	case r.New == "" && !r.To.IsZero():
		return errors.New("--to restores next to the running service instance: give --new and the new one's name")
	}
	c, guid, err := r.find(e.Ctx)
	if err != nil {
		return err
	}
	if !r.To.IsZero() {
		return r.restorePoint(e, c, guid)
	}
	into := r.Instance
	if r.New != "" {
		into = r.New
		fmt.Fprintf(e.Out, "Creating service instance %s...\n", into)
		if guid, err = createLike(e.Ctx, c, guid, into); err != nil {
			return err
		}
	} else if !r.Force {
		return fmt.Errorf("the restore replaces the content of %s, which is backed up first: confirm with --force, or give --new NAME", into)
	}
	fmt.Fprintf(e.Out, "Restoring backup %s into service instance %s...\n", r.Backup, into)
	body := capi.Doc{"backup": capi.Doc{"guid": r.Backup}}
	if err := c.Begin(e.Ctx, http.MethodPost, path(guid)+"/actions/restore", body, nil); err != nil {
		if r.New != "" {
			err = fmt.Errorf("%w\nThe new service instance %s is there, and empty: delete it with 'cf delete-service %s' before you restore again", err, r.New, r.New)
		}
		return err
	}
	fmt.Fprintln(e.Out, "OK")
	return nil
}

// restorePoint creates a service instance as the database was at a time.
func (r *restoreCmd) restorePoint(e *command.Env, c *capi.Client, of string) error {
	to := r.To.UTC().Format(time.RFC3339Nano)
	fmt.Fprintf(e.Out, "Restoring service instance %s as of %s into the new service instance %s...\n", r.Instance, to, r.New)
	_, err := create(e.Ctx, c, of, r.New, capi.Doc{"restore_from_point_in_time_of": of, "restore_from_point_in_time_before": to})
	if err != nil {
		return fmt.Errorf("%w\nIf 'cf services' lists %s, delete it with 'cf delete-service %s' before you restore again", err, r.New, r.New)
	}
	fmt.Fprintln(e.Out, "OK")
	return nil
}

type pointsCmd struct{ instanceFlags }

// Run shows the points in time.
func (p *pointsCmd) Run(e *command.Env) error {
	c, guid, err := p.find(e.Ctx)
	if err != nil {
		return err
	}
	var points struct {
		Enabled     bool
		First, Last *time.Time
	}
	if err := c.Call(e.Ctx, http.MethodGet, path(guid)+"/points", nil, &points); err != nil {
		return err
	}
	switch {
	case !points.Enabled:
		fmt.Fprintf(e.Out, "Point-in-time recovery of %s is not enabled: enable it with\n\n  cf update-service %s -c '{\"point_in_time_recovery\": true}'\n", p.Instance, p.Instance)
	case points.First == nil:
		fmt.Fprintf(e.Out, "%s has no base backup yet: 'cupola logs' of the service instance says why if it stays so.\n", p.Instance)
	default:
		first, last := points.First.Format(time.RFC3339), points.Last.Format(time.RFC3339)
		fmt.Fprintf(e.Out, "%s can be restored to each second from %s to %s:\n\n  cupola services restore %s --to %s --new NAME\n", p.Instance, first, last, p.Instance, last)
	}
	return nil
}

// createLike makes a service instance that requires TLS if another one does, with its space and plan.
func createLike(ctx context.Context, c *capi.Client, like, name string) (guid string, err error) {
	var of capi.Doc
	if err := c.Call(ctx, http.MethodGet, "/v3/service_instances/"+like+"/parameters", nil, &of); err != nil {
		return "", err
	}
	var parameters capi.Doc
	if tls, ok := of[databroker.TLSParameter]; ok {
		parameters = capi.Doc{databroker.TLSParameter: tls}
	}
	return create(ctx, c, like, name, parameters)
}

// create makes a service instance with the space and the plan of another one, and parameters, which may be nil.
func create(ctx context.Context, c *capi.Client, like, name string, parameters capi.Doc) (guid string, err error) {
	var i struct {
		Relationships struct {
			Space capi.Doc `json:"space"`
			Plan  capi.Doc `json:"service_plan"`
		}
	}
	if err := c.Call(ctx, http.MethodGet, "/v3/service_instances/"+like, nil, &i); err != nil {
		return "", err
	}
	body := capi.Doc{"type": "managed", "name": name, "relationships": capi.Doc{"space": i.Relationships.Space, "service_plan": i.Relationships.Plan}}
	if parameters != nil {
		body["parameters"] = parameters
	}
	if err := c.Begin(ctx, http.MethodPost, "/v3/service_instances", body, nil); err != nil {
		return "", err
	}
	space, _ := i.Relationships.Space["data"].(map[string]any)
	return c.First(ctx, "service instance "+name, "/v3/service_instances?"+url.Values{"names": {capi.Exact(name)}, "space_guids": {fmt.Sprint(space["guid"])}}.Encode())
}

type downloadCmd struct {
	capi.Flags
	Backup string `arg:"" help:"The backup, as 'cupola services backups' lists it."`
	File   string `arg:"" help:"The file to write, which must not exist." type:"path"`
}

// Run downloads a backup.
func (d *downloadCmd) Run(e *command.Env) (err error) {
	c, err := d.Login(e.Ctx)
	if err != nil {
		return err
	}
	body, err := c.Download(e.Ctx, "/v1/service_backups/"+url.PathEscape(d.Backup)+"/download")
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.OpenFile(d.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, body)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(d.File))
	}
	fmt.Fprintf(e.Out, "Downloaded %s to %s\n", command.BytesText(n), d.File)
	return nil
}

type deleteCmd struct {
	capi.Flags
	Backup string `arg:"" help:"The backup, as 'cupola services backups' lists it."`
}

// Run deletes a backup.
func (d *deleteCmd) Run(e *command.Env) error {
	c, err := d.Login(e.Ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Deleting backup %s...\n", d.Backup)
	if err := c.Call(e.Ctx, http.MethodDelete, "/v1/service_backups/"+url.PathEscape(d.Backup), nil, nil); err != nil {
		return err
	}
	fmt.Fprintln(e.Out, "OK")
	return nil
}
