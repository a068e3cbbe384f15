package doctor

import (
	"context"
	"strings"
	"sync"
)

type check struct {
	name string
	root bool // the check needs root
	run  func(context.Context) Result
}

func (m *machine) checks() []check {
	return []check{
		{"root", false, m.privileges},
		{"platform", false, m.platform},
		{"kernel", false, m.kernel},
		{"namespaces", true, m.userns},
		{"cgroup", false, m.cgroup},
		{"swap", false, m.swap},
		{"seccomp", false, m.seccomp},
		{"engine", false, m.engine},
		{"security", false, m.modules},
		{"data dir", false, m.traversable},
		{"disk", false, m.disk},
		{"backups", false, m.backups},
		{"overlayfs", true, m.overlay},
		{"users", true, m.users},
		{"quota", true, m.quota},
		{"memory", false, m.memory},
		{"open files", false, m.nofile},
		{"nftables", true, m.nftables},
		{"veth", true, m.veth},
		{"forwarding", false, m.forward},
		{"firewall", true, m.firewall},
		{"subnet", false, m.subnet},
		{"http", false, m.http},
		{"https", false, m.https},
		{"certificates", false, m.certificates},
		{"alerts", true, m.alerts},
		{"names", false, m.names},
		{"resolvers", false, m.resolvers},
		{"proxy", false, m.proxy},
		{"clock", false, m.clock},
		{"host stack", true, m.hostStack},
		{"buildpacks", false, m.buildpacks},
		{"templates", true, m.templates},
		{"containers", false, m.containers},
	}
}

// Check runs all checks concurrently and returns their results in a fixed order.
// Without root it skips the checks that need root, and the first result says so.
func Check(ctx context.Context, o Options) []Result {
	return thisMachine(o).check(ctx)
}

func (m *machine) check(ctx context.Context) []Result {
	var todo []check
	for _, c := range m.checks() {
		if m.superuser || !c.root {
			todo = append(todo, c)
		}
	}
	results := make([]Result, len(todo))
	var wg sync.WaitGroup
	for i, c := range todo {
		wg.Go(func() {
			results[i] = c.run(ctx)
			results[i].Name = c.name
		})
	}
	wg.Wait()
	pointToCause(results)
	return results
}

// pointToCause replaces the fixes of what a missing privilege alone forbids: where root
// or the platform lacks privileges, nothing else helps before.
func pointToCause(results []Result) {
	cause := ""
	for _, r := range results {
		if (r.Name == "root" || r.Name == "platform") && r.Level == Fail && cause == "" {
			cause = r.Name
		}
	}
	for i, r := range results {
		forbidden := strings.Contains(r.Detail, "operation not permitted") || strings.Contains(r.Detail, "read-only file system") && !strings.Contains(r.Fix, "remount") ||
			strings.Contains(r.Detail, "chown ") && strings.Contains(r.Detail, "invalid argument") || // a user ID that this user namespace lacks
			r.Detail == noCgroups
		if cause != "" && r.Level != OK && forbidden {
			results[i].Fix = "mend '" + cause + "' first: see above"
		}
	}
}
