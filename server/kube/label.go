package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/bosh/manifest"
)

// Labels and annotations, named as cf-operator did.
const (
	prefix        = "quarks.cloudfoundry.org/"
	deploymentKey = prefix + "deployment-name"
	groupKey      = prefix + "instance-group-name"
	versionKey    = prefix + "deployment-version"
	azIndexKey    = prefix + "az-index"
	azNameKey     = prefix + "az-name"
	secretKindKey = prefix + "secret-kind"
	secretVerKey  = prefix + "secret-version"
	sourceKey     = prefix + "source-description"
	digestKey     = prefix + "content-digest"
	variableKey   = prefix + "variable-name"
	madeKey       = prefix + "variable-digest" // of what a variable was made
	canaryKey     = prefix + "canary-watch-time-ms"
	updateKey     = prefix + "update-watch-time-ms"
	managedBy     = "app.kubernetes.io/managed-by"
	partOf        = "app.kubernetes.io/part-of"
	podIndex      = "apps.kubernetes.io/pod-index" // Kubernetes' own, of pods of StatefulSets
	tagPrefix     = "bosh.io/tag."
)

// labels are those of all objects of a deployment.
func (r *rendering) labels() doc {
	return doc{managedBy: "cupola", partOf: r.names.Label(), deploymentKey: r.names.Label()}
}

// annotations are the deployment's tags, and the source of an object.
func (r *rendering) annotations(source string) doc {
	a := doc{sourceKey: source}
	for key, value := range r.Tags {
		a[tagKey(key)] = value
	}
	return a
}

var qualified = pattern.Lazy(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)

// tagKey returns the annotation's key for a tag. A tag that is not a valid
// name is hashed.
func tagKey(tag string) string {
	name := strings.TrimPrefix(tagPrefix, "bosh.io/") + tag
	if len(name) > manifest.MaxLabel || !qualified().MatchString(name) {
		sum := sha256.Sum256([]byte(tag))
		return tagPrefix + hex.EncodeToString(sum[:8])
	}
	return tagPrefix + tag
}

// meta is the metadata of an object of the deployment.
func (r *rendering) meta(name, source string) doc {
	return without(doc{"name": name, "namespace": r.Namespace, "labels": r.labels(), "annotations": r.annotations(source)})
}

// selector are the labels by which a group's pods are found.
func (g *group) selector() doc {
	return doc{deploymentKey: g.r.names.Label(), groupKey: manifest.Sanitize(g.Name)}
}

// GroupOf names the instance group of a StatefulSet, which has one in each AZ; "" for what
// is of none.
func GroupOf(o Object) string {
	labels := o.Map("metadata", "labels")
	deployment, group := text(labels, deploymentKey), text(labels, groupKey)
	if deployment == "" || group == "" {
		return ""
	}
	return o.Text("metadata", "namespace") + "/" + deployment + "/" + group
}

// labels are those of a group's objects.
func (g *group) labels() doc {
	l := doc{}
	for key, value := range g.Settings.Labels {
		l[key] = value
	}
	maps.Copy(l, g.r.labels())
	maps.Copy(l, g.selector())
	return l
}

func (g *group) annotations() doc {
	a := doc{}
	for key, value := range g.Settings.Annotations {
		a[key] = value
	}
	maps.Copy(a, g.r.annotations(fmt.Sprintf("instance group %s", g.Name)))
	return a
}

func (g *group) meta(name string) doc {
	return without(doc{"name": name, "namespace": g.r.Namespace, "labels": g.labels(), "annotations": g.annotations()})
}
