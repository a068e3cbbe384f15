package doctor

import "testing"

func TestBuildpacks(t *testing.T) {
	m := files(t, map[string]string{
		"usr/lib/jvm/java-17/bin/java": "", "usr/bin/python3": "-> /elsewhere/python3", "usr/local/go/bin/go": "",
		"var/lib/cupola/rootfs/stacks/.minifs-12/fs/etc/":          "",
		"var/lib/cupola/rootfs/stacks/mine/fs/usr/sbin/php-fpm8.2": "", "var/lib/cupola/rootfs/stacks/bare/fs/etc/": "",
	})
	r := m.buildpacks(t.Context())
	want := "host has java, python, go, and lacks node, ruby, php, nginx, rust, r, dotnet-core; bare has no toolchain; mine has php, and lacks java, node, python, ruby, go, nginx, rust, r, dotnet-core; " +
		"to get one: sudo cupola stack build debian12 --with NAME; dotnet-core: install the .NET runtime from Microsoft's packages, or publish the app with its runtime (dotnet publish --self-contained)"
	if r.Level != OK || r.Detail != want {
		t.Errorf("got %+v; want %q", r, want)
	}
}
