package desire

import (
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// StagingTimeout is how long a staging may take: Cloud Controller's default.
const StagingTimeout = 15 * time.Minute

// Cloud Controller's defaults of a staging container, for a build that says
// nothing.
const (
	stagingMemoryMB  = 1024
	stagingDiskMB    = 4096
	stagingCPUWeight = 50
)

// The outputs of a staging.
const (
	OutputDroplet = "droplet"
	OutputCache   = "cache"
)

// StagingIn is what a staging depends on.
type StagingIn struct {
	Owner
	Build      *cf.Build
	Package    *cf.Package
	Stack      *cf.Stack   // Name and Compat matter; those of an image are its own
	Buildpacks []Buildpack // in order
	Named      bool        // the user named them: none is asked whether it can
	Cache      string      // digest of the app's build cache; "" for none
}

// Buildpack is a buildpack that a staging has: Key is its name or its URL.
type Buildpack struct {
	Key    string
	Digest string // sha256 of its zip
}

// Staging is what runs for a build.
func Staging(in StagingIn) lrp.RunInfo {
	b := in.Build
	memory, disk := orElse(b.MemoryMB, stagingMemoryMB), orElse(b.DiskMB, stagingDiskMB)
	return lrp.RunInfo{
		RootFS: rootFS(b.Lifecycle, in.Stack.Name),
		Inputs: in.inputs(),
		Env:    in.env(memory, disk),
		Action: lrp.Run{Path: builder, Args: in.args(), User: user, Nofile: maxFiles},

		Timeout:  StagingTimeout,
		MemoryMB: memory, DiskMB: disk, CPUWeight: stagingCPUWeight,
		LogRateLimitByte: b.LogRateLimit,
		Egress:           in.egress(true),
		Log:              lrp.LogTarget{GUID: in.App.GUID, Source: "STG", Instance: "0", Tags: in.tags()},

		ResultFile: "/tmp/result.json",
		Outputs: []lrp.Output{
			{Name: OutputDroplet, Path: "/tmp/droplet"},
			{Name: OutputCache, Path: "/tmp/output-cache", Optional: true},
		},
	}
}

func orElse(n, other int) int {
	if n == 0 {
		return other
	}
	return n
}

func (in StagingIn) inputs() []lrp.Input {
	inputs := []lrp.Input{{Digest: in.Package.Digest, Dest: "/tmp/app"}}
	for _, b := range in.Buildpacks {
		inputs = append(inputs, lrp.Input{Digest: b.Digest, Dest: fmt.Sprintf("/tmp/buildpacks/%016x", xxhash.Sum64String(b.Key))})
	}
	if in.Cache != "" {
		inputs = append(inputs, lrp.Input{Digest: in.Cache, Dest: "/tmp/cache", Optional: true})
	}
	return inputs
}

// args are the builder's, which splits the order at commas.
func (in StagingIn) args() []string {
	keys := make([]string, len(in.Buildpacks))
	for i, b := range in.Buildpacks {
		keys[i] = b.Key
	}
	return []string{
		"-buildDir=/tmp/app",
		"-outputDroplet=/tmp/droplet",
		"-outputMetadata=/tmp/result.json",
		"-outputBuildArtifactsCache=/tmp/output-cache",
		"-buildpacksDir=/tmp/buildpacks",
		"-buildpacksDownloadDir=/tmp/buildpackdownloads",
		"-buildArtifactsCacheDir=/tmp/cache",
		"-buildpackOrder=" + strings.Join(keys, ","),
		fmt.Sprintf("-skipDetect=%t", in.Named),
		"-skipCertVerify=false",
	}
}

// env is the environment in Cloud Controller's order: CF_STACK comes after the
// app's own variables, so that nobody can set it.
func (in StagingIn) env(memoryMB, diskMB int) []lrp.EnvVar {
	var v vars
	v.set("LANG", defaultLang)
	v.merge(in.Owner.Staging)
	v.merge(in.Build.Env)
	v.set("CF_STACK", in.compat())
	v.system(in.vcapApplication(memoryMB, diskMB))
	return v
}

func (in StagingIn) compat() string {
	if in.Stack.Compat != "" {
		return in.Stack.Compat
	}
	return in.Stack.Name
}
