package admin

import (
	"context"

	"cupola/server/admin/steps"
	"cupola/server/cells"
	"cupola/server/doctor"
)

// CheckTunnels asks the running daemon of a data directory for its tunnels into clusters. It returns no result if no cell is a
// cluster, or if no daemon answers.
func CheckTunnels(ctx context.Context, dataDir string) []doctor.Result {
	all, err := call[cells.Uses](ctx, dataDir, cellList.path(), None{}, func(steps.Step) {})
	if err != nil {
		return nil
	}
	return doctor.Tunnels(all)
}
