package cell

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// environment is what a process of the container sees: what the system says,
// then what the container's definition says, then what the process' own does.
// Later definitions win.
func (b *build) environment(u user, run *lrp.Run) []string {
	all := append(b.systemEnv(u), b.full.Env...)
	all = append(all, run.Env...)
	at := map[string]int{}
	var env []string
	for _, v := range all {
		pair := v.Name + "=" + b.withAddress(v.Value)
		if n, ok := at[v.Name]; ok {
			env[n] = pair
			continue
		}
		at[v.Name] = len(env)
		env = append(env, pair)
	}
	return env
}

// withAddress returns text with the container's address in place of its AddressMark.
func (b *build) withAddress(text string) string {
	if b.full.AddressMark == "" {
		return text
	}
	return strings.ReplaceAll(text, b.full.AddressMark, b.record().Address)
}

// addressed is withAddress for the contents of files, which stay as they are.
func (b *build) addressed(all []lrp.File) []lrp.File {
	if b.full.AddressMark == "" {
		return all
	}
	all = slices.Clone(all)
	for n, f := range all {
		all[n].Content = []byte(b.withAddress(string(f.Content)))
	}
	return all
}

// arguments are those of a process, with its path.
func (b *build) arguments(run *lrp.Run) []string {
	all := []string{run.Path}
	for _, a := range run.Args {
		all = append(all, b.withAddress(a))
	}
	return all
}

// systemEnv are Garden's variables of a user, and Diego's of an instance.
//
// The router and other containers reach a container at its own address, so
// that is its external address as well.
func (b *build) systemEnv(u user) []lrp.EnvVar {
	address := b.record().Address
	env := []lrp.EnvVar{
		{Name: "PATH", Value: searchPath(u)},
		{Name: "HOME", Value: u.Home},
		{Name: "USER", Value: u.Name},
		{Name: "CF_INSTANCE_GUID", Value: b.guid()},
		{Name: "CF_INSTANCE_IP", Value: address},
		{Name: "CF_INSTANCE_INTERNAL_IP", Value: address},
		{Name: "CF_INSTANCE_PORTS", Value: instancePorts(b.portMappings())},
	}
	env = append(env, b.credentialEnv()...)
	env = append(env, portEnv(address, b.full.Ports)...)
	if b.full.Kind == lrp.KindInstance {
		index := strconv.Itoa(b.full.Index)
		env = append(env,
			lrp.EnvVar{Name: "CF_INSTANCE_INDEX", Value: index},
			lrp.EnvVar{Name: contract.EnvInstanceGUID, Value: b.guid()},
			lrp.EnvVar{Name: contract.EnvInstanceIndex, Value: index})
	}
	return env
}

// portEnv names the first of a container's ports. A container without any, as of
// a task or a staging, has the variables of the address all the same, empty
// (executor: depot/steps/run_step.go, networkingEnvVars).
func portEnv(address string, ports []uint16) []lrp.EnvVar {
	if len(ports) == 0 {
		return []lrp.EnvVar{{Name: "CF_INSTANCE_PORT"}, {Name: "CF_INSTANCE_ADDR"}}
	}
	port := strconv.Itoa(int(ports[0]))
	return []lrp.EnvVar{
		{Name: contract.EnvPort, Value: port},
		{Name: "CF_INSTANCE_PORT", Value: port},
		{Name: "CF_INSTANCE_ADDR", Value: fmt.Sprintf("%s:%s", address, port)},
	}
}

// searchPath is Garden's search path, which has the sbin folders for root alone.
func searchPath(u user) string {
	if u.UID == 0 {
		return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// instancePorts is the JSON of CF_INSTANCE_PORTS. The TLS port for other containers
// has no external one (executor: depot/steps/run_step.go, networkingEnvVars).
func instancePorts(of []lrp.PortMapping) string {
	type mapping struct {
		External         uint16 `json:"external"`
		Internal         uint16 `json:"internal"`
		ExternalTLSProxy uint16 `json:"external_tls_proxy,omitempty"`
		InternalTLSProxy uint16 `json:"internal_tls_proxy,omitempty"`
	}
	mappings := make([]mapping, len(of))
	for n, m := range of {
		mappings[n] = mapping{m.Port, m.Port, m.ExternalTLSPort(), m.TLSPort}
	}
	text, err := json.Marshal(mappings)
	if err != nil {
		return "[]"
	}
	return string(text)
}
