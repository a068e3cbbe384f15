package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

type check struct {
	name string
	root bool // the check needs root
	run  func(context.Context) Result
	own  bool // it is of what containers on this machine need
}

// checks are those that this machine needs.
func (m *machine) checks() []check {
	all := []check{
		{"root", false, m.privileges, false},
		{"platform", false, m.platform, false},
		{"kernel", false, m.kernel, false},
		{"namespaces", true, m.userns, true},
		{"cgroup", false, m.cgroup, true},
		{"swap", false, m.swap, true},
		{"seccomp", false, m.seccomp, true},
		{"engine", false, m.engine, true},
		{"security", false, m.modules, true},
		{"data dir", false, m.traversable, false},
		{"disk", false, m.disk, false},
		{"backups", false, m.backups, false},
		{"overlayfs", true, m.overlay, true},
		{"users", true, m.users, true},
		{"quota", true, m.quota, true},
		{"memory", false, m.memory, false},
		{"open files", false, m.nofile, false},
		{"nftables", true, m.nftables, true},
		{"veth", true, m.veth, true},
		{"forwarding", false, m.forward, true},
		{"firewall", true, m.firewall, true},
		{"subnet", false, m.subnet, true},
		{"http", false, m.http, false},
		{"https", false, m.https, false},
		{"certificates", false, m.certificates, false},
		{"alerts", true, m.alerts, false},
		{"names", false, m.names, false},
		{"resolvers", false, m.resolvers, false},
		{"proxy", false, m.proxy, false},
		{"clock", false, m.clock, false},
		{"host stack", true, m.hostStack, true},
		{"buildpacks", false, m.buildpacks, true},
		{"templates", true, m.templates, true},
		{"containers", false, m.containers, true},
	}
	for _, name := range slices.Sorted(maps.Keys(m.Clusters)) {
		all = append(all, check{"cluster " + name, false, m.cluster(name), false})
	}
	return slices.DeleteFunc(all, func(c check) bool { return c.own && m.Elsewhere || c.root && !m.superuser })
}

// Check runs all checks concurrently and returns their results in a fixed order.
// Without root it skips the checks that need root, and the first result says so. Where
// containers run elsewhere, it skips what they need.
func Check(ctx context.Context, o Options) []Result {
	return thisMachine(o).check(ctx)
}

func (m *machine) check(ctx context.Context) []Result {
	todo := m.checks()
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
