package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"cupola/server/config"
	"cupola/server/uaa"
)

// reloads reads the configuration again at each hangup until ctx ends.
func (d *daemon) reloads(ctx context.Context) error {
	for {
		select {
		case <-d.Hangup:
			if err := d.reload(ctx); err != nil {
				d.Log.ErrorContext(ctx, "configuration not reloaded: nothing changed", "err", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reload applies the settings that may change while the daemon runs, or none after an error.
func (d *daemon) reload(ctx context.Context) error {
	next, err := d.Reread()
	if err != nil {
		return err
	}
	next.Listeners = d.Listeners
	if err := next.Validate(); err != nil {
		return err
	}
	pair, err := next.TLSFiles.Read()
	policy, fault := uaa.ParsePolicy(next.PasswordPolicy)
	if err := errors.Join(err, fault); err != nil {
		return err
	}
	live, _ := config.Changes(d.Current.Get(), &next)
	_, restart := config.Changes(d.started, &next)
	d.faces.UseCertificate(pair)
	d.faces.UAA.SetPolicy(policy)
	if d.Level != nil {
		d.Level.Set(slog.LevelInfo)
		if next.Debug {
			d.Level.Set(slog.LevelDebug)
		}
	}
	d.Current.Set(next)
	d.executor.Logs.SetArchive(next.LogArchiveBytes(), next.LogArchiveDays)
	if slices.ContainsFunc(live, func(name string) bool { return strings.HasPrefix(name, "backup-") }) {
		d.operations.Offsite.Set(next.Backups)
	}
	if err := d.alerts.SetCommand(ctx, next.AlertCommand); err != nil {
		d.Log.ErrorContext(ctx, "--alert-command has no effect", "err", err)
	}
	d.Log.InfoContext(ctx, "configuration reloaded", "changed", strings.Join(live, " "))
	if len(restart) > 0 {
		d.Log.WarnContext(ctx, "settings change with a restart", "flags", strings.Join(restart, " "))
	}
	d.loops.DataBroker.Reload(ctx, next.DataServices)
	return nil
}
