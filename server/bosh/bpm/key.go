package bpm

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// keys are those that a map may have, and what each holds; nil holds anything.
// Lists are passed through.
type keys map[string]keys

var (
	volume   = keys{"path": nil, "writable": nil, "allow_executions": nil, "mount_only": nil, "shared": nil}
	document = keys{"processes": {
		"name": nil, "executable": nil, "args": nil, "env": nil, "workdir": nil, "capabilities": nil,
		"ephemeral_disk": nil, "persistent_disk": nil, "shutdown_signal": nil, "requests": nil,
		"hooks":              {"pre_start": nil},
		"limits":             {"memory": nil, "open_files": nil, "processes": nil, "core_file_size": nil},
		"additional_volumes": volume,
		"unsafe":             {"privileged": nil, "unrestricted_volumes": volume, "host_pid_namespace": nil},
	}}
)

// unknown lists the paths of keys below n that k does not have.
func (k keys) unknown(n *yaml.Node, path string) []string {
	var all []string
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			all = append(all, k.unknown(item, fmt.Sprintf("%s/%d", path, i))...)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			inner, known := k[name]
			switch {
			case !known:
				all = append(all, path+"/"+name)
			case inner != nil:
				all = append(all, inner.unknown(n.Content[i+1], path+"/"+name)...)
			}
		}
	}
	return slices.Clip(all)
}
