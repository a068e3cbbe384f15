package desire

import (
	"encoding/json"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// What is different in the lifecycle of Cloud Native Buildpacks (CC:
// lib/cloud_controller/diego/cnb).

func (in StagingIn) isCNB() bool { return in.Build.Lifecycle.Type == cf.LifecycleCNB }

func isCNB(d *cf.Droplet) bool { return d.Lifecycle.Type == cf.LifecycleCNB }

// cnbArgs are the builder's. Each buildpack is the directory that has it; of an image,
// with the name of its own buildpack.
func (in StagingIn) cnbArgs() []string {
	args := []string{
		"--workspace-dir", contract.CNBWorkspace, "--layers", contract.CNBLayers,
		"--cache-dir", contract.StagingOldCache, "--cache-output", contract.StagingNewCache,
		"--droplet", contract.StagingDroplet, "--result", contract.StagingResult,
	}
	if !in.Named {
		args = append(args, "--auto-detect")
	}
	for _, b := range in.Buildpacks {
		source := dirOf(b)
		if b.Image != nil {
			source += "=" + b.Image.Buildpack
		}
		args = append(args, "--buildpack", source)
	}
	seen := map[string]bool{}
	for _, v := range in.passedEnv() {
		if !seen[v.Name] {
			seen[v.Name] = true
			args = append(args, "--pass-env-var", v.Name)
		}
	}
	return args
}

// cnbEnv is the builder's own environment (CC: StagingActionBuilder#task_environment_variables).
func (in StagingIn) cnbEnv() []lrp.EnvVar {
	var v vars
	v.set("CNB_USER_ID", itoa(contract.VcapID))
	v.set("CNB_GROUP_ID", itoa(contract.VcapID))
	v.set("CNB_STACK_ID", in.compat())
	v.set("LANG", defaultLang)
	return v
}

// passedEnv is what buildpacks see: the app's environment, and Cloud Foundry's.
func (in StagingIn) passedEnv() []lrp.EnvVar {
	var v vars
	v.merge(in.Owner.Staging)
	v.merge(in.Build.Env)
	v.system(in.Owner, in.vcapApplication(in.Build.MemoryMB, in.Build.DiskMB))
	return v
}

// registryCredentials are for servers of buildpacks, as JSON; they are given to the
// download alone.
func (in StagingIn) registryCredentials() []lrp.EnvVar {
	if len(in.Build.Credentials) == 0 {
		return nil
	}
	text, err := json.Marshal(in.Build.Credentials)
	if err != nil {
		panic(err) // strings always marshal
	}
	return []lrp.EnvVar{{Name: contract.EnvCNBCredentials, Value: string(text)}}
}

// imageDownload brings the layers of a buildpack's image, the lowest first.
func imageDownload(b Buildpack) lrp.Action {
	var steps []lrp.Action
	for i, layer := range b.Image.Layers {
		d := lrp.Download{Source: lrp.ImageLayer(layer), To: dirOf(b), User: contract.VcapName}
		if i == len(b.Image.Layers)-1 {
			d.Artifact = b.Key
		}
		steps = append(steps, d.Action())
	}
	return lrp.Serial(steps...)
}
