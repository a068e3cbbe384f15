package databroker

import (
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// Stack is the stack that databases run on.
const Stack = "services"

// Zone is the internal domain in which instances have their names.
const Zone = cf.ServicesDomain

// data is where a container finds its volume.
const data = "/data"

// startTimeout is how long a database may take to listen: it may have to
// recover first.
const startTimeout = 5 * time.Minute

// recoverTimeout is how long one may take that is restored to a point in time.
const recoverTimeout = time.Hour

// startTime is how long an instance may take to start, usually so long; one that is restored
// may take longer the first time.
func startTime(i *cf.DataInstance, usual time.Duration) time.Duration {
	want := parametersIn(i)
	switch {
	case i.State == cf.DataReady:
		return usual
	case want.Of != "":
		return recoverTimeout
	case want.Content != "":
		return startTimeout
	}
	return usual
}

// host is the name under which apps find an instance.
func host(instanceGUID string) string { return strings.ToLower(instanceGUID) + "." + Zone }

// desired is what runs for an instance; false: nothing does.
func desired(i *cf.DataInstance) (lrp.Desired, bool) {
	s, p, ok := known(i)
	if !ok || s.engine == nil || i.State != cf.DataMaking && i.State != cf.DataReady || i.Upgrade == cf.UpgradeStopping {
		return lrp.Desired{}, false
	}
	var run lrp.RunInfo
	ports := s.ports(i.TLSRequired)
	check := lrp.Check{Type: lrp.CheckPort, Port: ports[0]}
	switch e := s.engine.(type) {
	case builtIn:
		run = runBuiltIn(e, i, p)
	case custom:
		run, check = e.run(p), e.check()
	}
	const cpuWeight = 10
	check.InvocationTimeout, check.Failures = 10*time.Second, 3
	run.Checks, run.StartTimeout = lrp.CheckDefinition{Liveness: []lrp.Check{check}}, startTime(i, startTimeout)
	run.MemoryMB, run.CPUWeight, run.LogRateLimitByte, run.Ports = p.memoryMB, cpuWeight, -1, ports
	run.ServerNames = s.serverNames(i)
	run.PolicyGroup, run.Log = i.GUID, s.logTarget(i)
	return lrp.Desired{ProcessGUID: processGUID(i.GUID), Domain: lrp.DomainServices, Instances: 1, RunInfo: run}, true
}

// runBuiltIn is what the container of a built-in service runs, and on what.
func runBuiltIn(e builtIn, i *cf.DataInstance, p plan) lrp.RunInfo {
	const rootMB = 128
	script := e.script(p, i.TLSRequired)
	if i.State == cf.DataMaking && i.Upgrade == cf.UpgradeNone && parametersIn(i).Content != "" {
		script = e.disownFiles() + "\n" + script
	}
	run := lrp.Run{Path: "/bin/sh", Args: []string{"-c", script}, Dir: data}
	return lrp.RunInfo{RootFS: "preloaded:" + Stack, Action: run.Action(), DiskMB: rootMB,
		Env: append(baseEnv(), e.env(i)...), Volumes: []lrp.Volume{{Name: i.GUID, Path: data, Exclusive: true}}}
}

func baseEnv() []lrp.EnvVar {
	return []lrp.EnvVar{{Name: "PATH", Value: "/usr/local/bin:/usr/bin:/bin"}, {Name: "LANG", Value: "C.UTF-8"}}
}

// processGUID names what runs of a service instance.
func processGUID(instanceGUID string) string { return processPrefix + instanceGUID }

const processPrefix = "cupola-service-"

// instanceOf is the service instance that a process runs for; false: it runs for something else.
func instanceOf(processGUID string) (guid string, ok bool) {
	return strings.CutPrefix(processGUID, processPrefix)
}

// policies let the apps that instances are bound to connect to them.
func policies(instances []*cf.DataInstance, bindings []*cf.DataBinding) (list []lrp.NetworkPolicy) {
	ports := map[string][]uint16{}
	for _, i := range instances {
		if s, _, ok := known(i); ok && s.engine != nil {
			ports[i.GUID] = s.ports(i.TLSRequired)
		}
	}
	for _, b := range bindings {
		if b.AppGUID == "" || b.State == cf.DataDeleting {
			continue
		}
		for _, port := range ports[b.InstanceGUID] {
			list = append(list, lrp.NetworkPolicy{Source: b.AppGUID, Destination: b.InstanceGUID, Protocol: "tcp", FirstPort: port, LastPort: port})
		}
	}
	return list
}

// Hosts are the addresses of the instances that run, by the names that apps
// know them by.
func Hosts(instances []*cf.DataInstance, actuals []*lrp.Actual) map[string]string {
	hosts, of := map[string]string{}, map[string]string{}
	for _, i := range instances {
		of[processGUID(i.GUID)] = host(i.GUID)
	}
	for _, a := range actuals {
		if host := of[a.ProcessGUID]; host != "" && a.State == lrp.Running && !a.Stopping {
			hosts[host] = a.Address
		}
	}
	return hosts
}

// BoundPolicies let apps connect to what they are bound to.
func BoundPolicies(tx *store.Tx) ([]lrp.NetworkPolicy, error) {
	instances, err := store.DataInstances.All(tx)
	if err != nil || len(instances) == 0 {
		return nil, err
	}
	bindings, err := store.DataBindings.All(tx)
	return policies(instances, bindings), err
}

// AllDesired is what all instances desire; unknown are the process GUIDs of those
// whose rows are damaged.
func AllDesired(tx *store.Tx) (list []lrp.Desired, unknown []string, err error) {
	instances, err := store.DataInstances.All(tx)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range instances {
		d, ok := desired(i)
		if !ok {
			continue
		}
		if d.Log.Tags, err = LogTags(tx, i.GUID); err != nil {
			return nil, nil, err
		}
		list = append(list, d)
	}
	for _, i := range store.DataInstances.Damaged(tx) {
		unknown = append(unknown, processGUID(i.GUID))
	}
	return list, unknown, nil
}
