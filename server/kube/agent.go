package kube

import (
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// agentKey is the label of the pod by which the daemon reaches the other pods of a cell, and of no other.
const agentKey = instancePrefix + "agent"

// agentMemoryMB bounds an agent: a connection needs some 100 KB.
const agentMemoryMB = 256

// AgentName names the agent of a cell.
func AgentName(o InstanceOptions) string {
	return "cupola-agent-" + hashOf(o.Owner + "/" + o.Cell)[:16]
}

// AgentRunInfo is what an image of an agent is made of.
func AgentRunInfo(rootFS string) lrp.RunInfo { return lrp.RunInfo{RootFS: rootFS, ResultFile: "none"} }

// Agent renders the agent of a cell, of an image that has cupola's programs. The pod's own process only waits: the
// daemon runs the end of the tunnel that serves as a further program in it.
func Agent(o InstanceOptions) (RenderedInstance, error) {
	name := AgentName(o)
	made, err := Instance(lrp.Container{GUID: name, Kind: lrp.KindTask, CellID: o.Cell, RunInfo: lrp.RunInfo{RootFS: "docker://" + o.Image.Reference,
		Action: lrp.Run{Path: contract.Fetch, Args: []string{contract.CommandAgent}, User: contract.VcapName}.Action(), MemoryMB: agentMemoryMB, CPUWeight: 10, LogRateLimitByte: -1}}, o)
	if err != nil {
		return made, err
	}
	for _, object := range append(made.Secrets, made.Pod) {
		object.Map("metadata", "labels")[agentKey] = "true"
	}
	delete(made.Pod.metadata(), "annotations") // there is no container to adopt
	made.Pod.Map("spec")["restartPolicy"] = "Always"
	return made, nil
}

// IsAgent reports whether a pod is the agent of its cell.
func IsAgent(pod Object) bool { return pod.Label(agentKey) != "" }

// AgentImage is what an agent's pod runs.
func AgentImage(pod Object) string {
	for _, c := range pod.Items("spec", "containers") {
		return c.Text("image")
	}
	return ""
}

// AgentRuns reports whether the program of an agent's pod runs.
func AgentRuns(pod Object) bool {
	for _, c := range pod.Items("status", "containerStatuses") {
		return c.Map("state", "running") != nil
	}
	return false
}

// AgentEnded reports whether an agent's pod is about to end, or will never run again.
func AgentEnded(pod Object) bool {
	phase := pod.Text("status", "phase")
	return !Deleted(pod).IsZero() || phase == "Failed" || phase == "Succeeded"
}

// AgentWaits is why an agent's pod does not run.
func AgentWaits(pod Object) string { return StateOf(pod, Record{Packed: true}).Waits }

// Agents lets the agent connect to the pods of the cell, and nowhere else; and these let it in.
func (r Reach) Agents() []Object {
	all, agent := r.cell(), r.cell()
	agent[agentKey] = "true"
	in := doc{"podSelector": doc{"matchLabels": r.cell(), "matchExpressions": []any{doc{"key": agentKey, "operator": "DoesNotExist"}}}, "policyTypes": []any{"Ingress"},
		"ingress": []any{doc{"from": []any{doc{"podSelector": doc{"matchLabels": agent}}}}}}
	out := r.selecting(agentKey, "true", doc{"policyTypes": []any{"Egress"}, "egress": []any{doc{"to": []any{doc{"podSelector": doc{"matchLabels": all}}}}}})
	return []Object{r.object("pods that the agent connects to", in), r.object("agent of the cell", out)}
}

// PortOf is the first port of a pod's process; 0 of none.
func PortOf(pod Object) int64 {
	for _, c := range pod.Items("spec", "containers") {
		for _, p := range c.Items("ports") {
			return p.Number("containerPort")
		}
	}
	return 0
}
