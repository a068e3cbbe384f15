package admin

import (
	"context"
	"strings"

	"cupola/server/admin/steps"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/server/doctor"
)

// CheckServices asks the running daemon of a data directory for services of the built-in
// broker whose file is wrong, and for those that are not prepared. It returns no result if there are none,
// or if no daemon answers.
func CheckServices(ctx context.Context, dataDir string) (all []doctor.Result) {
	report, err := call[databroker.Report](ctx, dataDir, BrokerStatus.path(), None{}, func(steps.Step) {})
	if err != nil {
		return nil
	}
	for _, f := range report.Files {
		if f.Fault != "" {
			all = append(all, doctor.Result{Name: "services", Level: doctor.Warn, Detail: f.Fault, Fix: "sudo cupola broker check " + f.File + "   # then reload the daemon (SIGHUP)"})
		}
	}
	missing := report.Unprepared()
	if len(missing) == 0 {
		return all
	}
	return append(all, doctor.Result{Name: "services", Level: doctor.Warn, Fix: databroker.PrepareCommand(missing...) + datadir.Flag(dataDir),
		Detail: "services of --data-services that are not prepared: " + strings.Join(missing, ", ")})
}
