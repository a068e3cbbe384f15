package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/rootfs/reference"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// Labels and the annotation of a cell's pods and Secrets.
const (
	instancePrefix = "cupola.dev/"
	cellKey        = instancePrefix + "cell"
	ownerKey       = instancePrefix + "owner"
	appKey         = instancePrefix + "app"
	processKey     = instancePrefix + "process"
	indexKey       = instancePrefix + "index"
	egressKey      = instancePrefix + "egress" // what a pod may connect to
	policyKey      = instancePrefix + "policy-group"
	stagesKey      = instancePrefix + "stages" // of a pod that stages an app
	recordKey      = instancePrefix + "container"
)

// InstanceOptions identify the cell that a container is on.
type InstanceOptions struct {
	Namespace string // "" for the client's default
	Cell      string // ID of the cell; a valid label
	Owner     string // of the daemon's data directory; a valid label
	// Image is what the pod runs instead of the container's root and layers; nil where it is the root itself.
	Image *PackedImage
	// Stager is where a staging gets what it needs; nil where the cell stages nothing.
	Stager *Stager
	// UserNamespaces says that all nodes run pods in separate user namespaces.
	UserNamespaces bool
}

// PackedImage is an image of a container's root and layers, in a registry that nodes reach.
type PackedImage struct{ Reference, Username, Password string }

// Selector selects the pods and Secrets of the cell.
func (o InstanceOptions) Selector() string {
	return managedBy + "=cupola," + cellKey + "=" + o.Cell + "," + ownerKey + "=" + o.Owner
}

// Record is what a pod tells of its container, to the daemon that adopts it. It has
// no secrets.
type Record struct {
	Container   lrp.Container     // as far as recorded goes
	FilesDigest string            // "" where there is no place for any
	Files       map[string]string // the keys of their Secret by their paths
	Pulls       bool              // there are credentials of the image's registry
	Packed      bool              // the image was made of a root here, and has cupola's programs
	Sources     map[string]string // of the log, by the container of the pod
	Inputs      []string          // of a staging: what its stager may download
}

// RenderedInstance is a container as Kubernetes objects.
type RenderedInstance struct {
	Secrets []Object // which the pod needs
	Pod     Object
	Record  Record
	Dropped []string // variables whose names Kubernetes does not accept
}

// Instance renders a container of a cell as a pod that fits the Pod Security Standard
// "restricted". The error says what of the container no pod can do.
func Instance(c lrp.Container, o InstanceOptions) (RenderedInstance, error) {
	p := &instancePod{Container: c, o: o}
	if Stages(c) && o.Stager != nil {
		p.Container = o.Stager.staging(c)
	}
	if err := p.check(); err != nil {
		return RenderedInstance{}, err
	}
	p.record = Record{Container: recorded(c).container(), FilesDigest: lrp.FilesDigest(c.AllFiles()), Pulls: p.image.Password != "", Packed: o.Image != nil, Sources: map[string]string{}, Inputs: inputsOf(c)}
	for n, r := range p.runs {
		p.record.Sources[containerName(n)] = cmp.Or(r.LogSource, c.Log.Source)
	}
	p.secrets()
	return p.pod()
}

// instancePod is an Instance under way.
type instancePod struct {
	lrp.Container
	o       InstanceOptions
	image   PackedImage
	runs    []lrp.Run // the first is the process, the others are its sidecars
	users   []podUser // of runs
	record  Record
	objects []Object
	dropped []string
}

// ProcessContainer is the container of a pod that has the instance's own process; others have its sidecars.
const ProcessContainer = "process"

// containerName names the container of a pod that has the nth of its processes.
func containerName(n int) string {
	if n == 0 {
		return ProcessContainer
	}
	return "sidecar-" + strconv.Itoa(n)
}

// check finds out what the pod runs, or why none can.
func (p *instancePod) check() (err error) {
	for _, c := range []struct {
		has  bool
		what string
	}{
		{len(p.Layers) > 0 && p.o.Image == nil || len(p.CachedDependencies) > 0, "droplets and files that are unpacked into the container"},
		{!p.Setup.IsZero() || !p.Monitor.IsZero(), "a setup or monitor action"},
		{len(p.Trees) > 0 || p.AddressMark != "" || p.Pod != "", "the instances of BOSH deployments"},
		{len(p.Volumes) > 0, "volumes of this machine"},
		{p.ResultFile != "" && !Stages(p.Container), "a result file"},
		{Stages(p.Container) && (p.o.Stager == nil || p.o.Image == nil), "stagings without --kubernetes-registry"},
		{p.Privileged, "privileged containers"},
		{len(p.Checks.Liveness) > 1 || len(p.Checks.Readiness) > 1 || len(p.Checks.Active) > 0, "several checks of one kind"},
	} {
		if c.has {
			return fmt.Errorf("a Kubernetes cell does not run %s", c.what)
		}
	}
	if p.image, err = p.pulled(); err != nil {
		return err
	}
	if p.runs, err = runsOf(p.Action); err != nil {
		return err
	}
	for _, s := range p.Sidecars {
		more, err := runsOf(s.Action)
		if err != nil {
			return err
		}
		p.runs = append(p.runs, more...)
	}
	for _, r := range p.runs {
		u, err := podUserOf(r.User)
		if err != nil {
			return err
		}
		p.users = append(p.users, u)
	}
	return nil
}

// pulled is the image that the node pulls.
func (p *instancePod) pulled() (PackedImage, error) {
	if p.o.Image != nil {
		return *p.o.Image, nil
	}
	ref, err := reference.Parse(p.RootFS)
	if err != nil || ref.Scheme != reference.SchemeDocker {
		return PackedImage{}, errors.Join(err, fmt.Errorf("a Kubernetes cell runs images of registries alone, not %s", p.RootFS))
	}
	return PackedImage{strings.TrimPrefix(ref.String(), "docker://"), p.ImageUsername, p.ImagePassword}, nil
}

// runsOf are the processes of an action that run at once: one, or several that end together.
func runsOf(a lrp.Action) ([]lrp.Run, error) {
	switch {
	case a.Run != nil:
		return []lrp.Run{*a.Run}, nil
	case a.Codependent == nil:
		return nil, errors.New("a Kubernetes cell runs processes, and those that end together; no other actions")
	}
	var all []lrp.Run
	for _, inner := range a.Codependent.Actions {
		runs, err := runsOf(inner)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			r.LogSource = cmp.Or(r.LogSource, a.Codependent.LogSource)
			all = append(all, r)
		}
	}
	return all, nil
}

// podUser is whom a container of a pod runs as.
type podUser struct{ uid, gid int }

// podUserOf is the user of a process. Root is vcap: "restricted" lets no container be root.
func podUserOf(name string) (podUser, error) {
	uid, gid, has := strings.Cut(name, ":")
	switch uid {
	case "", "root", "0", contract.VcapName:
		return podUser{contract.VcapID, contract.VcapID}, nil
	}
	n, err := strconv.ParseUint(uid, 10, 31)
	if err != nil {
		return podUser{}, fmt.Errorf("a Kubernetes cell runs an image as a number, not as user %q: give the image a numeric USER, or the process one", uid)
	}
	u := podUser{int(n), int(n)}
	if g, err := strconv.ParseUint(gid, 10, 31); has && err == nil {
		u.gid = int(g)
	}
	return u, nil
}

func (p *instancePod) meta(name string) doc {
	labels := doc{managedBy: "cupola", cellKey: p.o.Cell, ownerKey: p.o.Owner}
	if len(p.Log.GUID) <= 63 && qualified().MatchString(p.Log.GUID) {
		labels[appKey] = p.Log.GUID
	}
	groups := ReachGroupsOf(p.RunInfo)
	labels[egressKey] = groups.Egress
	if groups.Policy != "" {
		labels[policyKey] = groups.Policy
	}
	if Stages(p.Container) {
		labels[stagesKey] = "true"
	}
	if p.Kind == lrp.KindInstance {
		labels[indexKey], labels[processKey] = strconv.Itoa(p.Index), labelOf(p.ProcessGUID)
	}
	return without(doc{"name": name, "namespace": p.o.Namespace, "labels": labels})
}

// pod is the pod, once its Secrets are there.
func (p *instancePod) pod() (RenderedInstance, error) {
	text, err := p.record.text()
	if err != nil {
		return RenderedInstance{}, err
	}
	meta := p.meta(p.GUID)
	meta["annotations"] = doc{recordKey: text}
	var containers, pull []any
	for n := range p.runs {
		containers = append(containers, without(p.container(n)))
	}
	if p.image.Password != "" {
		pull = []any{doc{"name": secretName(p.GUID, pullPart)}}
	}
	var hostUsers any // the cluster's default is true
	if p.o.UserNamespaces {
		hostUsers = false
	}
	spec := without(doc{
		"hostUsers": hostUsers, "restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false, "containers": containers, "volumes": p.volumes(), "imagePullSecrets": pull,
		"terminationGracePeriodSeconds": p.graceSeconds(), "tolerations": tolerations(), "topologySpreadConstraints": p.spread(),
		"securityContext": doc{"runAsNonRoot": true, "fsGroup": p.users[0].gid, "seccompProfile": doc{"type": "RuntimeDefault"},
			"sysctls": []any{doc{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}}},
	})
	return RenderedInstance{Secrets: p.objects, Pod: Object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, Record: p.record, Dropped: p.dropped}, nil
}

// lostSeconds is how long a pod stays on a node that does not answer.
const lostSeconds = 30

func tolerations() (all []any) {
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		all = append(all, doc{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": lostSeconds})
	}
	return all
}

// spread divides the instances of a process between zones, and between the nodes of each, as far as there is room: as Diego does.
func (p *instancePod) spread() (all []any) {
	if p.Kind != lrp.KindInstance {
		return nil
	}
	for _, key := range []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"} {
		all = append(all, doc{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": doc{"matchLabels": doc{processKey: labelOf(p.ProcessGUID)}}})
	}
	return all
}

// Grace is how long Diego lets a process end by itself.
const Grace = 10 * time.Second

// GraceOf is how long the processes of a pod may take to end.
func GraceOf(pod Object) time.Duration {
	return max(Grace, time.Duration(pod.Number("spec", "terminationGracePeriodSeconds"))*time.Second)
}

// graceSeconds is how long the processes may take to end.
func (p *instancePod) graceSeconds() int {
	longest := Grace
	for _, r := range p.runs {
		var sum time.Duration
		for _, s := range r.Stop {
			sum += s.Wait
		}
		longest = max(longest, sum)
	}
	return int(longest.Seconds())
}

func (p *instancePod) container(n int) doc {
	r, u := p.runs[n], p.users[n]
	c := doc{
		"name": containerName(n), "image": p.image.Reference, "command": escapedAll([]string{r.Path}), "args": escapedAll(r.Args), "workingDir": absolute(r.Dir),
		"env": p.env(n), "envFrom": p.envFrom(n), "resources": p.resources(n), "volumeMounts": p.mounts(),
		"securityContext": doc{"runAsUser": u.uid, "runAsGroup": u.gid, "allowPrivilegeEscalation": false, "capabilities": doc{"drop": []any{"ALL"}}},
	}
	if n > 0 {
		return c
	}
	var ports []any
	for _, port := range p.Ports {
		ports = append(ports, doc{"containerPort": int(port), "protocol": "TCP"})
	}
	c["ports"] = ports
	p.probes(c)
	return c
}

// absolute is a directory as a pod accepts it.
func absolute(dir string) string {
	if dir == "" || strings.HasPrefix(dir, "/") {
		return dir
	}
	return "/" + dir
}

// resources are the limits of a container. Each of a pod's containers may have all memory of
// the instance; the first reserves it.
func (p *instancePod) resources(n int) doc {
	r := limits(p.MemoryMB, p.DiskMB)
	if p.CPUs > 0 {
		most, _ := r["limits"].(doc)
		if most == nil {
			most = doc{}
		}
		most["cpu"] = cpus(p.CPUs)
		r["limits"] = most
	}
	requests := doc{"cpu": fmt.Sprintf("%dm", max(p.CPUWeight, 1))}
	if n > 0 {
		requests = doc{"cpu": "1m", "memory": "0", "ephemeral-storage": "0"}
	}
	r["requests"] = requests
	return r
}

// neverSeconds is the start timeout of a container that may take for ever.
const neverSeconds = 365 * 24 * 3600

// probes adds those of the process. What never was well within the start timeout ends, and
// so does what is not well any longer; the cell then decides whether it starts again.
func (p *instancePod) probes(c doc) {
	if list := p.Checks.Liveness; len(list) > 0 && list[0].Asks() {
		start, live := checkProbe(list[0]), checkProbe(list[0])
		timeout := int(p.StartTimeout.Seconds())
		if timeout <= 0 {
			timeout = neverSeconds
		}
		start["periodSeconds"], start["failureThreshold"] = 1, timeout
		live["periodSeconds"], live["failureThreshold"] = wholeSeconds(list[0].Interval, healthEvery), max(list[0].Failures, 1)
		c["startupProbe"], c["livenessProbe"] = start, live
	}
	if list := p.Checks.Readiness; len(list) > 0 && list[0].Asks() {
		ready := checkProbe(list[0])
		ready["periodSeconds"], ready["failureThreshold"], ready["successThreshold"] = wholeSeconds(list[0].Interval, readinessEvery), max(list[0].Failures, 1), max(list[0].Successes, 1)
		c["readinessProbe"] = ready
	}
}

// wholeSeconds rounds up; zero is the default.
func wholeSeconds(d time.Duration, otherwise int) int {
	if d <= 0 {
		return otherwise
	}
	return int((d + time.Second - 1) / time.Second)
}

// checkProbe is a check that asks as a probe.
func checkProbe(c lrp.Check) doc {
	d := doc{"timeoutSeconds": wholeSeconds(c.InvocationTimeout, invocationLimits)}
	if c.InitialDelay > 0 {
		d["initialDelaySeconds"] = wholeSeconds(c.InitialDelay, 0)
	}
	switch c.Type {
	case lrp.CheckHTTP:
		get := doc{"path": cmp.Or(c.Path, "/"), "port": int(c.Port)}
		var headers []any
		for _, h := range c.Headers {
			headers = append(headers, doc{"name": h.Name, "value": h.Value})
		}
		if c.Host != "" {
			headers = append(headers, doc{"name": "Host", "value": c.Host})
		}
		if len(headers) > 0 {
			get["httpHeaders"] = headers
		}
		if c.TLS {
			get["scheme"] = "HTTPS"
		}
		d["httpGet"] = get
	case lrp.CheckPort:
		d["tcpSocket"] = doc{"port": int(c.Port)}
	case lrp.CheckGRPC:
		d["grpc"] = without(doc{"port": int(c.Port), "service": c.Service})
	case lrp.CheckExec:
		d["exec"] = doc{"command": list(append([]string{c.Run.Path}, c.Run.Args...))}
	}
	return d
}

// sortedPaths are the paths of files, by which their keys are given.
func sortedPaths(files []lrp.File) []string {
	byPath := map[string]bool{}
	for _, f := range files {
		byPath[f.Path] = true
	}
	return slices.Sorted(maps.Keys(byPath))
}
