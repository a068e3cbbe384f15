package kube

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cupola/server/bosh/manifest"
)

// Version is that of a Secret that is never changed.
type Version struct {
	N      int    `json:"n"`
	Digest string `json:"digest"` // of what it holds
}

// KnownOf are the greatest versions among objects.
func KnownOf(all []Object) map[string]Version {
	known := map[string]Version{}
	for _, o := range all {
		if o.Kind() != "Secret" || o.Label(secretKindKey) != "versionedSecret" {
			continue
		}
		n, err := strconv.Atoi(o.Label(secretVerKey))
		base, ok := strings.CutSuffix(o.Name(), "-v"+o.Label(secretVerKey))
		if err == nil && ok && n > known[base].N {
			known[base] = Version{n, o.annotation(digestKey)}
		}
	}
	return known
}

// ObjectsOf selects the objects of a deployment.
func ObjectsOf(deployment string) string {
	return managedBy + "=cupola," + deploymentKey + "=" + manifest.Names{Deployment: deployment}.Label()
}

// VersionedOf is the label selector of a deployment's versioned Secrets, see
// KnownOf.
func VersionedOf(deployment string) string {
	return deploymentKey + "=" + manifest.Names{Deployment: deployment}.Label() + "," + secretKindKey + "=versionedSecret"
}

// VariablesOf selects the other Secrets of a deployment.
func VariablesOf(deployment string) string {
	return deploymentKey + "=" + manifest.Names{Deployment: deployment}.Label() + ",!" + secretKindKey
}

// VariableOf reads the variable of a Secret that has its values; false for one
// that is of none, or of one that users give.
func VariableOf(o Object) (Variable, bool) {
	v := Variable{Name: o.annotation(variableKey), Made: o.annotation(madeKey), Fields: map[string]string{}}
	for key, value := range child(o, "data") {
		encoded, _ := value.(string)
		b, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return v, false
		}
		v.Fields[key] = string(b)
	}
	return v, v.Name != "" && v.Made != ""
}

// versioned adds a Secret that is never changed: what it holds changes with its
// name. It returns the name.
func (r *rendering) versioned(name func(version int) string, source string, values map[string][]byte) string {
	digest := r.digest(values)
	base := strings.TrimSuffix(name(1), "-v1")
	n := 1
	if known, ok := r.Known[base]; ok {
		n = known.N
		if known.Digest != digest {
			n++
		}
	}
	meta := r.meta(name(n), source)
	meta["labels"].(doc)[secretKindKey] = "versionedSecret"
	meta["labels"].(doc)[secretVerKey] = strconv.Itoa(n)
	meta["annotations"].(doc)[digestKey] = digest
	o := r.secret(meta, opaque, values)
	if r.WithSecrets {
		o["immutable"] = true // else the placeholders would be for ever
	}
	r.add(o)
	return name(n)
}

// digestRounds make it slow to guess a password from the digest of a file that
// has it: objects without values may be seen by many.
const digestRounds = 5000

// digest is the same for the same values of the same deployment.
func (r *rendering) digest(values map[string][]byte) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, part := range [][]byte{[]byte(key), values[key]} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			h.Write(part)
		}
	}
	salt := sha256.Sum256([]byte(r.Name))
	sum, err := pbkdf2.Key(sha256.New, string(h.Sum(nil)), salt[:], digestRounds, 16)
	if err != nil {
		panic(err) // only of key lengths that are not allowed
	}
	return hex.EncodeToString(sum)
}
