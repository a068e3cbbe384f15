package kube

import (
	"bytes"
	"fmt"
	"testing"

	"cupola/store/cf"
)

func exampleApp() App {
	return App{
		Name: "My_Shop", Image: "registry.example.com/shop:1", Env: map[string]string{"COLOR": "blue", "VCAP_SERVICES": "{}", "odd name": "x"},
		Processes: []AppProcess{
			{Type: "web", Instances: 2, MemoryMB: 256, DiskMB: 1024, Health: cf.HealthCheck{Type: "http", Endpoint: "/health", Timeout: 30}, Readiness: cf.HealthCheck{Type: "process"},
				Sidecars: []cf.Sidecar{{Name: "Config Server", Command: "serve $(pwd)", MemoryMB: 64}, {Name: "agent", Command: "./agent"}, {Name: "config server", Command: "x"}}},
			{Type: "worker", User: "root", Command: "work --at $(date)", Instances: 1, MemoryMB: 64, Health: cf.HealthCheck{Type: "process"}},
		},
		Bindings: []AppBinding{{Name: "db", Type: "postgres", Provider: "us", Credentials: map[string]any{"uri": "postgres://u:p@h/d", "port": 5432, "a/b": "c"}}},
		Routes: []AppRoute{
			{Host: "shop.example.com", Process: "web"}, {Host: "shop.example.com", Path: "/admin", Process: "web", Port: 9000},
			{Host: "*.example.org", Process: "web"}, {Host: "tcp.example.com:1024", Process: "web", TCPPort: 1024},
			{Host: "tcp.example.com:1025", Process: "worker", Port: 5432, TCPPort: 1025}, {Host: "tcp.example.org:1025", Process: "worker", TCPPort: 1025},
		},
		Tasks: []string{"migrate", "clean", "migrate"},
	}
}

func TestRenderApp(t *testing.T) {
	for name, o := range map[string]AppOptions{
		"app.golden.yml":         {},
		"app-secrets.golden.yml": {Namespace: "shop", WithSecrets: true, Stateful: true, Gateway: "public"},
		"app-image.golden.yml":   {PullSecret: "registry"},
	} {
		app := exampleApp()
		app.Launcher = o.PullSecret != ""
		all, warnings, err := RenderApp(app, o)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		out.WriteString(Header{Version: "v1", Source: "app My_Shop", Target: name, Secrets: o.WithSecrets}.String())
		for _, w := range warnings {
			fmt.Fprintf(&out, "# warning: %s\n", w)
		}
		if err := Write(&out, all); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
	}
	if _, _, err := RenderApp(App{Name: "a"}, AppOptions{}); err == nil || err.Error() != "the app has no image" {
		t.Errorf("got %v", err)
	}
}
