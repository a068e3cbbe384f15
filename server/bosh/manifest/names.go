package manifest

import (
	"crypto/md5" //nolint:gosec // it shortens names, as cf-operator does; it guards nothing
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Limits of names.
const (
	// MaxLabel is Kubernetes' limit of most names: a DNS label.
	MaxLabel = 63
	// maxController is that of StatefulSets and CronJobs: their controllers append
	// up to 11 characters, and what comes of it has to be a label.
	maxController = 52
	// maxSubdomain is that of Secrets.
	maxSubdomain = 253
)

// Sanitize makes a DNS label of a name: lower case, hyphens for underscores,
// nothing else that is not a letter, digit or hyphen. One longer than MaxLabel is
// its first 31 characters and the MD5 of it all, as cf-operator has it.
func Sanitize(name string) string {
	name = clean(name)
	if len(name) > MaxLabel {
		return name[:MaxLabel-32] + digest(name)
	}
	return name
}

// clean is Sanitize without its limit.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '_':
			return '-'
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '-', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
	return strings.TrimSuffix(strings.TrimPrefix(name, "-"), "-")
}

func digest(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// shorten is s, or its beginning, a hyphen and the MD5 of all of s.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.TrimRight(s[:limit-33], "-.") + "-" + digest(s)
}

// Names gives every object of a deployment its name. The same names hold on
// this machine and in Kubernetes.
type Names struct{ Deployment string }

// Names are the names of the manifest's objects.
func (m *Manifest) Names() Names { return Names{m.Name} }

func (n Names) dep() string { return clean(n.Deployment) }

func (n Names) secret(format string, args ...any) string {
	return shorten(n.dep()+"."+fmt.Sprintf(format, args...), maxSubdomain)
}

// Label is the deployment's name.
func (n Names) Label() string { return Sanitize(n.Deployment) }

// VarInterpolation is the step that interpolates variables.
func (n Names) VarInterpolation() string { return Sanitize("var-interpolation-" + n.Deployment) }

// DataGathering is the step that gathers links and properties.
func (n Names) DataGathering() string { return Sanitize("data-gathering-" + n.Deployment) }

// BPMConfigs is the step that renders the processes of jobs.
func (n Names) BPMConfigs() string { return Sanitize("bpm-configs-" + n.Deployment) }

// WithOps is the manifest with its ops applied.
func (n Names) WithOps() string { return n.secret("with-ops") }

// DesiredManifest is a version of the manifest, with all variables in it.
func (n Names) DesiredManifest(version int) string { return n.secret("desired-manifest-v%d", version) }

// Resolved is a version of a group's properties and links.
func (n Names) Resolved(group string, version int) string {
	return n.secret("ig-resolved.%s-v%d", clean(group), version)
}

// BPM is a version of what a group's processes are.
func (n Names) BPM(group string, version int) string {
	return n.secret("bpm.%s-v%d", clean(group), version)
}

// Jobs is a version of a group's rendered templates.
func (n Names) Jobs(group string, version int) string {
	return n.secret("jobs.%s-v%d", clean(group), version)
}

// Registry is the credentials of a release's registry.
func (n Names) Registry(release string) string { return n.secret("registry-%s", clean(release)) }

// Variable is a variable that the manifest declares. Its argument is one of
// VariableKeys.
func (n Names) Variable(key string) string { return n.secret("var-%s", key) }

// ImplicitVariable is a variable that the user gives. Its argument is one of
// VariableKeys.
func (n Names) ImplicitVariable(key string) string { return n.secret("var-implicit-%s", key) }

// Group is an instance group of services, and its Service.
func (n Names) Group(group string) string { return Sanitize(n.Deployment + "-" + group) }

// Service is where instances of a group are reached, by their index.
func (n Names) Service(group string, index int) string {
	return Sanitize(fmt.Sprintf("%s-%s-%d", n.Deployment, group, index))
}

// StatefulSet is that of a group, or of one of its AZs: az is from 0, or -1
// when the group has none.
func (n Names) StatefulSet(group string, az, version int) string {
	zone := ""
	if az >= 0 {
		zone = fmt.Sprintf("-z%d", az)
	}
	return shorten(clean(fmt.Sprintf("%s-%s%s-v%d", n.Deployment, group, zone, version)), maxController)
}

// Pod is one of a StatefulSet's.
func (n Names) Pod(statefulSet string, ordinal int) string {
	return fmt.Sprintf("%s-%d", statefulSet, ordinal)
}

// Claim is the claim of a group's persistent disk.
func (n Names) Claim(group string) string { return Sanitize(n.Deployment + "-" + group + "-pvc") }

// CronJob is that of an errand.
func (n Names) CronJob(group string) string {
	return shorten(clean(n.Deployment+"-"+group), maxController)
}

// Job is the run of an auto-errand: template is what runs, in any form that
// changes when it does.
func (n Names) Job(group string, template []byte) string {
	return Sanitize(fmt.Sprintf("%s-%s-%s", n.Deployment, group, hash8(template)))
}

// Container is that of a process of a job.
func Container(job, process string) string { return Sanitize(job + "-" + process) }

// PreStart is the container of a job's bin/pre-start.
func PreStart(job string) string { return Sanitize("bosh-pre-start-" + job) }

// ProcessPreStart is the container of a process's own pre_start hook.
func ProcessPreStart(job, process string) string {
	return Sanitize("bpm-pre-start-" + job + "-" + process)
}

// WaitFor is the container that waits for a Service.
func WaitFor(service string) string { return Sanitize("wait-for-" + service) }

func hash8(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

// VariableKeys gives variables the keys by which secrets are named. Names that
// would come to one key have a hash appended, but for one that is its own key.
func VariableKeys(names []string) map[string]string {
	counts := map[string]int{}
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			counts[variableKey(name)]++
		}
	}
	keys := make(map[string]string, len(names))
	for name := range seen {
		key := variableKey(name)
		if key == "" || counts[key] > 1 && key != name {
			key = strings.TrimPrefix(key+"-"+hash8([]byte(name)), "-")
		}
		keys[name] = key
	}
	return keys
}

// variableKey is the key of a variable that shares it with no other. What
// stands for a path is kept apart.
func variableKey(name string) string {
	return clean(strings.NewReplacer("/", "-", ".", "-").Replace(strings.TrimPrefix(name, "/")))
}
