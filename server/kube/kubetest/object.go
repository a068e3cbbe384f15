package kubetest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"cupola/server/kube"
)

type doc = map[string]any

// furnish makes what a cluster has before anybody deploys into it.
func (p *Plane) furnish() {
	p.t.Helper()
	p.Create("v1", "Namespace", doc{"metadata": doc{"name": namespace}})
	p.Create("storage.k8s.io/v1", "StorageClass", doc{
		"metadata":    doc{"name": "fast", "annotations": doc{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner": "pretended",
	})
}

// pretendNodes makes the nodes whose pods have no processes.
func (p *Plane) pretendNodes() {
	p.t.Helper()
	room := doc{"cpu": "8", "memory": "16Gi", "pods": "50", "ephemeral-storage": "100Gi"}
	for _, zone := range []string{"z1", "eu-2"} {
		p.Create("v1", "Node", doc{
			"metadata": doc{"name": "node-" + zone, "labels": doc{kube.DefaultZoneLabel: zone}},
			"status":   doc{"allocatable": room, "capacity": room},
		})
	}
}

// of is where objects of a kind are: in a namespace where they have one.
func (p *Plane) of(version, kind string) dynamic.ResourceInterface {
	p.t.Helper()
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		p.t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
	if slices.Contains([]string{"Namespace", "Node", "StorageClass", "ClusterRole", "ClusterRoleBinding", "PersistentVolume"}, kind) {
		return p.client.Resource(resource)
	}
	return p.client.Resource(resource).Namespace(p.within)
}

// Create makes an object, in the namespace.
func (p *Plane) Create(version, kind string, o kube.Object) {
	p.t.Helper()
	made := maps.Clone(o)
	made["apiVersion"], made["kind"] = version, kind
	if _, err := p.of(version, kind).Create(p.t.Context(), &unstructured.Unstructured{Object: made}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		p.t.Fatal(err)
	}
}

// List is all of a kind in the namespace, sorted by name.
func (p *Plane) List(version, kind string) (all []kube.Object) {
	p.t.Helper()
	items, err := p.of(version, kind).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, i := range items.Items {
		all = append(all, i.Object)
	}
	slices.SortFunc(all, func(a, b kube.Object) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// Label labels the namespace; nil removes a label.
func (p *Plane) Label(labels map[string]any) {
	p.t.Helper()
	text, err := json.Marshal(doc{"metadata": doc{"labels": labels}})
	if err == nil {
		_, err = p.of("v1", "Namespace").Patch(p.t.Context(), namespace, types.MergePatchType, text, metav1.PatchOptions{})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Claims are the persistent volume claims, sorted, each with its phase.
func (p *Plane) Claims() (all []string) {
	p.t.Helper()
	for _, o := range p.List("v1", "PersistentVolumeClaim") {
		all = append(all, o.Name()+" "+o.Text("status", "phase"))
	}
	return all
}

// Delete removes all of a kind in the namespace, each after what it owns.
func (p *Plane) Delete(version, kind string) {
	p.t.Helper()
	policy := metav1.DeletePropagationForeground
	if err := p.of(version, kind).DeleteCollection(p.t.Context(), metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// DeleteOne removes one object, at once.
func (p *Plane) DeleteOne(version, kind, name string) {
	p.t.Helper()
	var now int64
	if err := p.of(version, kind).Delete(p.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		p.t.Fatal(err)
	}
}

// Trigger runs a CronJob as users do: kubectl create job --from=cronjob/…
func (p *Plane) Trigger(cronJob kube.Object, name string) kube.Object {
	p.t.Helper()
	run := kube.Object{"metadata": doc{"name": name, "namespace": namespace, "labels": cronJob.Map("metadata", "labels")},
		"spec": cronJob.Map("spec", "jobTemplate", "spec")}
	p.Create("batch/v1", "Job", run)
	run["kind"] = "Job"
	return run
}
