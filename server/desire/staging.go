package desire

import (
	"fmt"
	"path"
	"strings"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// StagingTimeout is how long a staging may take: Cloud Controller's default.
const StagingTimeout = 15 * time.Minute

// stagingCPUWeight is Cloud Controller's of a staging container.
const stagingCPUWeight = 50

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

// Buildpack is a buildpack that a staging has.
type Buildpack struct {
	Key    string // its name, or its URL without secrets
	Digest string // sha256 of its zip; "" for one by URL
	URL    string // where the staging container downloads it from; "" for an admin's and for an image
	Image  *cf.BuildpackImage
}

// Staging is what runs for a build.
func Staging(in StagingIn) lrp.RunInfo {
	b := in.Build
	registry := imageCredential(&cf.App{Credentials: b.Credentials}, b.Lifecycle, cf.Credential{})
	return lrp.RunInfo{
		RootFS: rootFS(b.Lifecycle, in.Stack.Name), ImageUsername: registry.Username, ImagePassword: registry.Password, Lifecycle: true,
		Files:  in.files(),
		Env:    in.env(b.MemoryMB, b.DiskMB),
		Action: in.action(),

		MemoryMB: b.MemoryMB, DiskMB: b.DiskMB, CPUWeight: stagingCPUWeight,
		LogRateLimitByte: b.LogRateLimit,
		Egress:           in.egress(true),
		EgressGroup:      in.egressGroup(true),
		PolicyGroup:      in.App.GUID,
		Constraint:       constraint(b.Placement),
		Log:              lrp.LogTarget{GUID: in.App.GUID, Source: "STG", Instance: "0", Tags: in.tags()},

		ResultFile: contract.StagingResult,

		OrganizationalUnits: in.units(), SystemCertificatesPath: systemCertificates,
	}
}

// action is Cloud Controller's: fetch what the builder needs, run it, keep what
// it has made.
func (in StagingIn) action() lrp.Action {
	var steps []lrp.Action
	if packs := in.buildpacks(); len(packs) > 0 {
		steps = append(steps, lrp.Parallel(packs...))
	}
	steps = append(append(steps, lrp.Parallel(in.downloads()...)), in.fetches()...)
	return lrp.Within(StagingTimeout, lrp.Serial(append(steps, in.builder().Action(), in.uploads())...))
}

func (in StagingIn) builder() lrp.Run {
	if in.isCNB() {
		return lrp.Run{Path: contract.CNBBuilder, Args: in.cnbArgs(), User: contract.VcapName, Nofile: maxFiles}
	}
	return lrp.Run{Path: contract.Builder, Args: in.args(), User: contract.VcapName, Nofile: maxFiles}
}

// uploads keep the droplet and the build cache, with the lines of Cloud
// Controller's staging_action_builder.rb.
func (in StagingIn) uploads() lrp.Action {
	return lrp.Action{EmitProgress: &lrp.EmitProgress{
		Start: "Uploading droplet, build artifacts cache...", Success: "Uploading complete", FailurePrefix: "Uploading failed",
		Action: lrp.Parallel(
			lrp.Upload{Artifact: "droplet", From: contract.StagingDroplet, To: lrp.BlobScheme + OutputDroplet, User: contract.VcapName, Like: in.Package.Digest}.Action(),
			lrp.Tried(lrp.Upload{Artifact: "build artifacts cache", From: contract.StagingNewCache, To: lrp.BlobScheme + OutputCache, User: contract.VcapName}.Action()),
		),
	}}
}

// fetches download the buildpacks by URL, one after the other. They are
// processes of the container, since its security groups decide what a user may
// have connected to.
func (in StagingIn) fetches() (all []lrp.Action) {
	seen := map[string]bool{}
	for _, b := range in.Buildpacks {
		if b.URL != "" && !seen[b.Key] {
			seen[b.Key] = true
			all = append(all, in.fetch(b).Action())
		}
	}
	return all
}

func (in StagingIn) fetch(b Buildpack) lrp.Run {
	r := lrp.Run{Path: contract.Fetch, Args: []string{"-to=" + dirOf(b), "-name=" + b.Key},
		Env: []lrp.EnvVar{{Name: contract.EnvBuildpackURL, Value: b.URL}}, User: contract.VcapName, Nofile: maxFiles}
	if in.isCNB() {
		r.Args = append(r.Args, "-archive")
		r.Env = append(r.Env, in.registryCredentials()...)
	}
	return r
}

// dirOf is where a staging has a buildpack.
func dirOf(b Buildpack) string {
	parent := contract.StagingBuildpacks
	switch {
	case b.Image != nil:
		parent = contract.StagingImages
	case b.URL != "":
		parent = contract.StagingDownloads
	}
	return path.Join(parent, contract.BuildpackDir(b.Key))
}

func download(digest, to, artifact string) lrp.Action {
	return lrp.Download{Source: lrp.Blobbed(digest), To: to, User: contract.VcapName, Artifact: artifact}.Action()
}

// buildpacks bring the admin buildpacks. As in Diego the log names each.
func (in StagingIn) buildpacks() (all []lrp.Action) {
	seen := map[string]bool{}
	for _, b := range in.Buildpacks {
		if b.URL != "" || seen[b.Key] {
			continue
		}
		seen[b.Key] = true
		if b.Image == nil {
			all = append(all, download(b.Digest, dirOf(b), b.Key))
			continue
		}
		all = append(all, imageDownload(b))
	}
	return all
}

func (in StagingIn) downloads() []lrp.Action {
	to := contract.StagingApp
	if in.isCNB() {
		to = contract.CNBWorkspace
	}
	all := []lrp.Action{download(in.Package.Digest, to, "app package")}
	if in.Cache != "" {
		all = append(all, lrp.Tried(download(in.Cache, contract.StagingOldCache, "build artifacts cache")))
	}
	return all
}

// args are the builder's, which splits the order at commas.
func (in StagingIn) args() []string {
	keys := make([]string, len(in.Buildpacks))
	for i, b := range in.Buildpacks {
		keys[i] = b.Key
	}
	return []string{
		"-buildDir=" + contract.StagingApp,
		"-outputDroplet=" + contract.StagingDroplet,
		"-outputMetadata=" + contract.StagingResult,
		"-outputBuildArtifactsCache=" + contract.StagingNewCache,
		"-buildpacksDir=" + contract.StagingBuildpacks,
		"-buildpacksDownloadDir=" + contract.StagingDownloads,
		"-buildArtifactsCacheDir=" + contract.StagingOldCache,
		"-buildpackOrder=" + strings.Join(keys, ","),
		fmt.Sprintf("-skipDetect=%t", in.Named),
		"-skipCertVerify=false",
	}
}

// env is the environment in Cloud Controller's order: CF_STACK comes after the
// app's own variables, so that no user can set it.
func (in StagingIn) env(memoryMB, diskMB int) []lrp.EnvVar {
	if in.isCNB() {
		return append(in.cnbEnv(), in.passedEnv()...)
	}
	var v vars
	v.set("LANG", defaultLang)
	v.merge(in.Owner.Staging)
	v.merge(in.Build.Env)
	v.set(contract.EnvStack, in.compat())
	v.system(in.Owner, in.vcapApplication(memoryMB, diskMB))
	return v
}

func (in StagingIn) compat() string {
	if in.Stack.Compat != "" {
		return in.Stack.Compat
	}
	return in.Stack.Name
}
