package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/admin/backup"
	"cupola/server/admin/repository"
	"cupola/server/admin/steps"
	"cupola/server/databroker"
	"cupola/server/datadir"
)

// restoreFrom creates a service instance of what a backup of everything has of one. The backup's content, and the key
// that opens it, stay with this process: the daemon gets that of the one service instance.
func (r *restoreCmd) restoreFrom(e *command.Env) (err error) {
	file, err := r.checkFrom()
	if err != nil {
		return err
	}
	dir, err := r.Root()
	if err != nil {
		return err
	}
	c, err := r.Login(e.Ctx)
	if err != nil {
		return err
	}
	var i backup.Instance
	err = withContent(dir, func(w io.Writer) (err error) {
		i, err = r.extract(e, dir, file, w)
		return command.Interrupted(e, err)
	}, func(content string) error {
		fmt.Fprintf(e.Out, "Restoring service instance %s as of %s into the new service instance %s...\n", r.Instance, command.When(i.Made), r.New)
		return r.createNew(e.Ctx, c, i, content)
	})
	if err == nil {
		fmt.Fprintln(e.Out, "OK")
	}
	return err
}

// withContent writes a content on its way to the daemon of a data directory, which is dropped unless the daemon takes it, and calls use with the
// content's ID.
func withContent(dir string, write func(io.Writer) error, use func(id string) error) (err error) {
	content, err := databroker.NewContent(filepath.Join(dir, datadir.ServiceContents))
	if err != nil {
		return err
	}
	defer func() {
		// A daemon that ended may have promised to make the service instance: the next one does, or deletes the content after a day.
		if _, ended := errors.AsType[capi.Unreached](err); !ended {
			err = errors.Join(err, content.Drop())
		}
	}()
	if err := errors.Join(write(content), content.Sync()); err != nil {
		return err
	}
	return use(content.ID)
}

// checkFrom checks the flags, and reports whether --from is a file.
func (r *restoreCmd) checkFrom() (file bool, err error) {
	info, serr := os.Stat(r.From)
	file = serr == nil && info.Mode().IsRegular()
	switch {
	case r.New == "":
		return false, errors.New("--from restores next to the running service instance: give --new and the new one's name")
	case !r.To.IsZero():
		return false, errors.New("a backup of everything is of one moment: give either --from or --to")
	case file && (r.Backup != "" || r.Identity != ""):
		return false, fmt.Errorf("%s is the file of one backup, and not encrypted: give neither the name of a backup nor --identity", r.From)
	case !file && r.Identity == "":
		return false, fmt.Errorf("%s is not a file: if it is an address that --backup-to has, give --identity and the file that opens its backups", r.From)
	}
	return file, nil
}

// extract writes the service instance's content, by way of a directory in dir.
func (r *restoreCmd) extract(e *command.Env, dir string, file bool, w io.Writer) (i backup.Instance, err error) {
	p := command.NewProgress(e)
	defer p.Clear()
	name := backup.InstanceName{Name: r.Instance, Org: r.Org, Space: r.Space}
	if file {
		if i, err = backup.InstanceOfFile(e.Ctx, dir, r.From, name, w, p.Step); err != nil {
			err = fmt.Errorf("%s: %w", r.From, err)
		}
		return i, err
	}
	at := offsiteFlags{DaemonFlags: r.DaemonFlags, From: r.From}
	err = at.with(e, func(ctx context.Context, from *repository.Repository) error {
		i, err = r.fetch(ctx, dir, from, name, w, p.Step)
		return err
	})
	return i, err
}

// fetch writes the service instance's content as a backup at an address has it.
func (r *restoreCmd) fetch(ctx context.Context, dir string, from *repository.Repository, name backup.InstanceName, w io.Writer, report steps.Func) (i backup.Instance, err error) {
	identities, err := readIdentities(r.Identity)
	if err != nil {
		return i, err
	}
	s, err := from.Find(ctx, cmp.Or(r.Backup, "latest"))
	if err != nil {
		return i, err
	}
	stream, err := from.Stream(ctx, s, identities)
	if err != nil {
		return i, err
	}
	defer stream.Close()
	return backup.InstanceOfTar(ctx, dir, stream, name, w, report)
}

// createNew makes the new service instance of a content, in the space that the backup says.
func (r *restoreCmd) createNew(ctx context.Context, c *capi.Client, i backup.Instance, content string) error {
	space, err := spaceOf(ctx, c, i)
	if err == nil {
		err = createFrom(ctx, c, space, capi.Doc{"name": r.New}, i, content)
	}
	if _, ended := errors.AsType[capi.Unreached](err); ended {
		return fmt.Errorf("%w\nIf 'cf services' lists %s once the daemon runs again, it goes on with the restore; else restore again", err, r.New)
	}
	if err != nil {
		return fmt.Errorf("%w\nIf 'cf services' lists %s, delete it with 'cf delete-service %s' before you restore again", err, r.New, r.New)
	}
	return nil
}

// createFrom makes a service instance of a content, with the plan that the backup says. The body says the rest.
func createFrom(ctx context.Context, c *capi.Client, space string, body capi.Doc, i backup.Instance, content string) error {
	query := url.Values{"names": {capi.Exact(i.Plan)}, "service_offering_names": {capi.Exact(i.Service)}, "service_broker_names": {databroker.Name}}
	plan, err := c.First(ctx, "plan "+i.Plan+" of the built-in broker's service "+i.Service+" here: enable it with 'serve --data-services'", "/v3/service_plans?"+query.Encode())
	if err != nil {
		return err
	}
	parameters := capi.Doc{databroker.ContentParameter: content}
	if i.TLS != "" {
		parameters[databroker.TLSParameter] = i.TLS
	}
	body["type"], body["parameters"] = "managed", parameters
	body["relationships"] = capi.Doc{"space": capi.ToOne(space), "service_plan": capi.ToOne(plan)}
	return c.Begin(ctx, http.MethodPost, "/v3/service_instances", body, nil)
}

// spaceOf is the daemon's space that a service instance was in: another one of the same name and org where that is gone.
func spaceOf(ctx context.Context, c *capi.Client, i backup.Instance) (guid string, err error) {
	all, err := capi.List[struct{ GUID string }](ctx, c, "/v3/spaces?"+capi.Filter("guids", i.SpaceGUID))
	if err != nil || len(all) > 0 {
		return i.SpaceGUID, err
	}
	guid, err = capi.Place{Org: i.Org}.Find(ctx, c, "space", "spaces", i.Space)
	if err != nil {
		err = fmt.Errorf("%w, where the service instance was: create it first", err)
	}
	return guid, err
}
