package images

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/system"
	"cupola/server/desire"
	"cupola/server/reconcile"
	"cupola/store/cf"
)

// Pull takes an image for containers into the cache.
func (i Images) Pull(ctx context.Context, p reconcile.ImagePull) (img reconcile.Image, err error) {
	ref, err := reference.Parse(p.Reference)
	if err != nil {
		return img, err
	}
	credentials := p.Credentials
	if p.Credential.Username != "" {
		credentials = cf.Credentials{ref.Host: p.Credential}
	}
	warn := func(what string) { p.Say("WARNING: " + what) }
	o := Options(ref, credentials, newPullReport(p.Say).layer, warn)
	if p.Buildpack {
		have := desire.BuildpackCredential(credentials, ref.Host)
		o.Username, o.Password, o.Token = have.Username, have.Password, have.Token
	}
	// Of an image that one user pulled with credentials, the digest alone must not be enough for another.
	o.Claim, o.Ask = true, p.AppGUID != "" && !same(p.Have, ref)
	got, err := i.Roots.Images.Pull(ctx, ref, o)
	if err != nil {
		return img, err
	}
	ref.Tag, ref.Digest = "", got.Digest
	if p.Buildpack {
		img.Reference = ref.String()
		img.Buildpack, img.Layers, err = i.buildpack(got)
		return img, err
	}
	if w := system.KernelWarning(got.Kernel); w != "" {
		warn(w)
	}
	img.StackImage = cf.StackImage{Reference: ref.String(), Compat: cmp.Or(got.Compat, p.Reference), Kernel: system.Kernel(), Env: got.Config.Env}
	p.Say(kernelLine(img.Kernel, got.Kernel))
	img.Metadata = dockerMetadata(got.Config)
	img.Metadata.Processes, err = i.processes(got.Digest)
	return img, err
}

// same reports whether a reference that a droplet has is of the image that is asked for by its digest.
func same(have string, ref reference.Reference) bool {
	h, err := reference.Parse(have)
	ref.Tag = ""
	return err == nil && h == ref
}

// kernelLine names the newest kernel interface that an image's programs can use, this machine's, and the oldest that they need.
func kernelLine(machine, oldest string) string {
	line := "Its programs run on this machine's Linux " + machine
	if oldest != "" {
		line += "; they need " + oldest + " or newer"
	}
	return line
}

// Warning says what to expect of a stack on this machine; "" for nothing.
func (i Images) Warning(name string) string {
	s, _ := i.Roots.Stacks.Get(name)
	return system.KernelWarning(s.Kernel)
}

// Options gives each registry the credentials that are kept for it.
func Options(ref reference.Reference, all cf.Credentials, progress func(image.LayerProgress), warn func(string)) image.PullOptions {
	auth := func(r reference.Reference) registry.Auth {
		have := desire.CredentialFor(all, r.Host)
		return registry.Auth{Username: have.Username, Password: have.Password}
	}
	own := auth(ref)
	return image.PullOptions{Username: own.Username, Password: own.Password, Others: auth, Progress: progress, Warn: warn}
}

func dockerMetadata(c image.Config) desire.DockerMetadata {
	m := desire.DockerMetadata{Cmd: c.Cmd, Entrypoint: c.Entrypoint, Workdir: c.WorkingDir, User: c.User}
	for _, exposed := range c.ExposedPorts {
		port, protocol, ok := strings.Cut(exposed, "/")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			continue // not what an image may say
		}
		if !ok {
			protocol = "tcp"
		}
		m.Ports = append(m.Ports, desire.DockerPort{Port: uint16(n), Protocol: protocol})
	}
	return m
}

// reportInterval is how often a pull logs its progress.
const reportInterval = time.Second

// pullReport sums up the layers of a pull.
type pullReport struct {
	say             func(string)
	began, reported time.Time
	layers          map[int]image.LayerProgress
	of              int
}

func newPullReport(say func(string)) *pullReport {
	now := time.Now()
	return &pullReport{say: say, began: now, reported: now, layers: map[int]image.LayerProgress{}}
}

func (r *pullReport) layer(p image.LayerProgress) {
	if have, ok := r.layers[p.Index]; ok && have.Phase == image.PhaseFetch && p.Phase != image.PhaseFetch {
		p.Done, p.Total = have.Total, have.Total // unpacking reads it once more
	}
	r.layers[p.Index], r.of = p, p.Layers
	if time.Since(r.reported) < reportInterval {
		return
	}
	r.reported = time.Now()
	r.say(r.line())
}

func (r *pullReport) line() string {
	var here int
	var done, total int64
	for _, l := range r.layers {
		if l.Phase == image.PhaseHere {
			here++
		}
		done, total = done+l.Done, total+l.Total
	}
	const mega = 1e6
	perSecond := float64(done) / time.Since(r.began).Seconds()
	line := fmt.Sprintf("%d of %d layers, %.1f of %.1f MB, %.1f MB/s", here, r.of, float64(done)/mega, float64(total)/mega, perSecond/mega)
	if left := total - done; left > 0 && perSecond > 0 {
		line += fmt.Sprintf(", %.0f s left", float64(left)/perSecond)
	}
	return line
}
