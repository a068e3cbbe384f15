package faces

import (
	"time"

	"cupola/server/machine"
	"cupola/store"
)

// executable is this program, also after its file was replaced.
const executable = "/proc/self/exe"

// newMachine shows admins the machine.
func (f *Faces) newMachine() *machine.Machine {
	x := f.Executor
	containers := func() (n int) {
		for _, c := range f.Executor.CellUse() {
			n += c.UsedContainers
		}
		return n
	}
	return machine.New(machine.Config{DataDir: x.DataDir, Database: x.Dir.Path("db", store.DatabaseFile), Version: x.Version, Started: time.Now(), Containers: containers,
		Store: x.Store, Stats: x.Stats, Requests: f.Metrics.ByApp,
		Doctor: []string{executable, "doctor", "--json", "--data-dir", x.DataDir, "--http", x.HTTP, "--https", x.HTTPS, "--domain", x.Domain}, Log: x.Log})
}
