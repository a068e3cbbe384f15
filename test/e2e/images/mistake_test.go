package images

import (
	"archive/tar"
	"cmp"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestMistakesWithImages makes the mistakes that images allow, and wants the cause and how to mend it from cupola app why.
func TestMistakesWithImages(t *testing.T) {
	t.Parallel()
	r := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--registry-ca", r.CA)
	d.Flag("diego_docker", true)
	foreign := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xf3\x00\x01" + strings.Repeat("\x00", 60) // for RISC-V
	layer := e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "srv/foreign", Mode: 0o755}, Content: []byte(foreign)}, e2e.TarEntry{Header: tar.Header{Name: "srv/plain", Mode: 0o644}, Content: []byte("#!/bin/sh\n")})
	for _, c := range []struct {
		name        string
		entrypoint  []string
		password    string // another than the registry's
		cause, mend string
	}{
		{"no-entrypoint", nil, "", "Neither the app nor its image (ENTRYPOINT, CMD) names a start command", "name it with cf push -c"},
		{"no-such-entrypoint", []string{"/srv/foreigner"}, "", "There is no file /srv/foreigner", "did you mean /srv/foreign?) in the image: check its ENTRYPOINT and CMD"},
		{"not-executable", []string{"/srv/plain"}, "", "/srv/plain is not executable", "run chmod +x /srv/plain"},
		{"other-processor", []string{"/srv/foreign"}, "", "/srv/foreign is a program for riscv64 processors", "docker build --platform linux/"},
		{"shell-command", []string{"/bin/sh", "-c", "no-such-program --serve"}, "", "There is no command no-such-program in the image", "use an image that has it"},
		{"private", []string{"/srv/plain"}, "wrong", "the image is private, or the credentials are wrong", "--docker-username"},
		{"no-image", nil, "", "the registry has no such image", "correct its name and tag"},
	} {
		image := r.Host + "/stacks/small:" + c.name
		if c.name != "no-image" {
			r.Push(t, c.name, v1.Config{Entrypoint: c.entrypoint, WorkingDir: "/srv"}, e2e.SmallStack(t, "docker"), layer)
		}
		fault := d.PushDocker(t, c.name, image, cmp.Or(c.password, e2e.RegistryPassword))
		e2e.Eventually(t, time.Minute, func() string {
			said, err := d.Run("app", "why", c.name)
			if err != nil || fault == "" && !strings.Contains(said, "web CRASHED: 1") {
				return said
			}
			lines := strings.Split(said, "\n")
			if first := strings.Join(lines[:min(len(lines), 5)], "\n"); !strings.Contains(first, c.cause) || !strings.Contains(first, c.mend) {
				t.Errorf("%s: the first lines are\n%s\nwant %q, %q", c.name, first, c.cause, c.mend)
			}
			return ""
		})
	}
}
