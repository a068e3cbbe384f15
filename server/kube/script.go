package kube

import (
	"cupola/server/bosh"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
)

// scriptPath is the PATH of BOSH's scripts.
const scriptPath = "/usr/sbin:/usr/bin:/sbin:/bin"

// drainLimit bounds, in seconds, how long a pod with a drain script may take to
// end; BOSH itself waits for as long as it takes.
const drainLimit = 600

// makeDirs makes directories, and brings the files of this instance into
// their place.
const (
	makeDirs  = "set -e\nmkdir -p \"$@\"\n"
	copyFiles = `cd ` + renderedDir + `
if [ -d all ]; then cp -RL all/. ` + jobsDir + `/; fi
`
	copyOwn = `if [ ! -d "$POD_ORDINAL" ]; then echo "instance $POD_ORDINAL was not rendered: render the deployment with as many instances" >&2; exit 1; fi
cp -RL "$POD_ORDINAL"/. ` + jobsDir + `/
`
	fillIP = `grep -rl ` + bpm.AddressMark + ` ` + jobsDir + ` | while IFS= read -r f; do sed -i "s/` + bpm.AddressMark + `/$POD_IP/g" "$f"; done
`
)

// createDirs is the container that comes before all others.
func (g *group) createDirs(at place) doc {
	m := &mounts{}
	m.add(dataVolume, dataDir, "", false)
	m.add(sysVolume, sysDir, "", false)
	if g.PersistentDiskMB > 0 {
		m.add(g.claim(), storeDir, "", false)
	}
	script := makeDirs
	env := g.placeEnv(at)
	if g.files.differ {
		m.add(renderedVolume, renderedDir, "", true)
		m.add(jobsVolume, jobsDir, "", false)
		script += copyFiles
		if g.files.own {
			script += copyOwn
		}
		script += fillIP
		env = append(env, doc{"name": "POD_IP", "valueFrom": doc{"fieldRef": doc{"fieldPath": "status.podIP"}}})
	}
	return doc{
		"name": "create-dirs", "image": g.Jobs[0].Image.Reference, "command": []any{"/bin/sh", "-c", script, "create-dirs"}, "args": escapedAll(g.directories()),
		"env": env, "volumeMounts": m.all, "securityContext": security(&bosh.Job{}, &bosh.Process{}),
	}
}

// inits are the containers that run before those of the processes, in order.
func (g *group) inits(at place) []any {
	all := []any{g.createDirs(at)}
	if at.service {
		for _, service := range g.waits() {
			all = append(all, g.waitFor(service))
		}
	}
	for i := range g.Jobs {
		if j := &g.Jobs[i]; j.Scripts.PreStart {
			all = append(all, g.preStart(j, at))
		}
	}
	for i := range g.Jobs {
		j := &g.Jobs[i]
		for n := range j.Processes {
			if p := &j.Processes[n]; p.Hooks.PreStart != "" {
				c := g.process(j, p, at)
				c["name"], c["command"] = manifest.ProcessPreStart(j.Name, p.Name), escapedAll([]string{p.Hooks.PreStart})
				delete(c, "args")
				c["securityContext"] = asRoot()
				all = append(all, without(c))
			}
		}
	}
	return all
}

// preStart is BOSH's script, which is root's, on a machine of BOSH's too.
func (g *group) preStart(j *bosh.Job, at place) doc {
	return doc{
		"name": manifest.PreStart(j.Name), "image": j.Image.Reference, "command": []any{bpm.JobDir(j.Name) + "/bin/pre-start"},
		"env": g.env(j, map[string]string{"PATH": scriptPath}, at), "volumeMounts": g.mountsOf(j, nil),
		"securityContext": asRoot(),
	}
}

// asRoot is the security context of scripts and hooks, which BOSH and bpm run as root.
func asRoot() doc {
	return doc{"runAsUser": 0, "runAsGroup": 0, "allowPrivilegeEscalation": false}
}

// waits are the Services that have to be there first: in serial, that of the
// group before.
func (g *group) waits() (services []string) {
	for i := range g.r.Groups {
		other := &g.r.Groups[i]
		if other == g.Group {
			break
		}
		if g.Update.InSerial() && other.Lifecycle == manifest.Service && len(other.Instances) > 0 {
			services = []string{other.Address}
		}
	}
	if g.RequiredService == "" {
		return services
	}
	required := g.RequiredService
	for _, other := range g.r.Groups {
		if other.Name == required {
			required = other.Address
		}
	}
	if len(services) == 0 || services[0] != required {
		services = append(services, required)
	}
	return services
}

func (g *group) waitFor(service string) doc {
	return doc{
		"name": manifest.WaitFor(service), "image": g.Jobs[0].Image.Reference,
		"command":         []any{"/bin/sh", "-c", `until getent hosts "$0"; do sleep 2; done`, service},
		"securityContext": security(&bosh.Job{}, &bosh.Process{}),
	}
}

// Scripts that run while a container starts and stops. Other than in commands,
// Kubernetes expands nothing here.
const (
	drainScript = `why=job_shutdown
while :; do
  wait=$("$0" "$why" hash_unchanged) || exit 1
  case $wait in
    -*) sleep "${wait#-}"; why=job_check_status ;;
    *) sleep "$wait"; break ;;
  esac
done
`
	interruptScript = `kill -INT 1
while kill -0 1 2>/dev/null; do sleep 1; done
`
	conditionScript = `n=0
until "$@"; do
  n=$((n+1))
  if [ $n -ge 300 ]; then exit 1; fi
  sleep 3
done
`
)

// lifecycle are the hooks of process n of a job: BOSH's scripts of the job run in
// its first container before it stops, in its last one after it has started.
func (g *group) lifecycle(j *bosh.Job, n int) doc {
	hooks := doc{}
	bin := bpm.JobDir(j.Name) + "/bin/"
	stop := ""
	if n == 0 && j.Scripts.PreStop {
		stop += "\"${0%drain}pre-stop\"\n"
	}
	if n == 0 && j.Scripts.Drain {
		stop += drainScript
	}
	if j.Processes[n].ShutdownSignal == "INT" {
		stop += interruptScript
	}
	if stop != "" {
		hooks["preStop"] = doc{"exec": doc{"command": []any{"/bin/sh", "-c", stop, bin + "drain"}}}
	}
	if n != len(j.Processes)-1 || !j.Scripts.PostStart {
		return hooks
	}
	command := []any{bin + "post-start"}
	if len(j.PostStart) > 0 {
		command = append([]any{"/bin/sh", "-c", conditionScript + `exec "$0"`, bin + "post-start"}, list(j.PostStart)...)
	}
	hooks["postStart"] = doc{"exec": doc{"command": command}}
	return hooks
}

// graceSeconds is how long a pod may take to end.
func (g *group) graceSeconds() int {
	if g.Settings.GraceSeconds != nil {
		return *g.Settings.GraceSeconds
	}
	for _, j := range g.Jobs {
		if j.Scripts.Drain || j.Scripts.PreStop {
			return drainLimit
		}
	}
	return int((bpm.QuitAfter + bpm.KillAfter).Seconds())
}
