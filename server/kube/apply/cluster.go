package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cupola/server/kube"
)

// manager is who has written a field.
const manager = "cupola"

// Config says which cluster it is, as kubectl has it.
type Config struct {
	InCluster  bool   // this process is a pod of the cluster, and there is no kubeconfig
	Kubeconfig string // a file; "" is KUBECONFIG's, or the home directory's
	Context    string // "" is the current one
	Namespace  string // "" is the context's
	Force      bool   // take fields from other managers
	// Warn takes what the cluster warns of; nil lets it go.
	Warn func(string)

	accountDir string // "" is serviceAccount
}

// Cluster is the Kubernetes cluster that objects are applied to.
type Cluster struct {
	Config
	client dynamic.Interface
	http   *http.Client
	exec   *http.Client  // with HTTP/1.1 alone
	base   *url.URL      // of the API server
	asked  chan struct{} // full of logs that are asked for
}

// Open finds the cluster. It makes no request.
func Open(c Config) (*Cluster, error) {
	to, namespace, err := c.find()
	if err != nil {
		return nil, err
	}
	c.Namespace = namespace
	to.UserAgent, to.QPS, to.WarningHandler = manager, -1, warner(c.Warn)
	requests, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	client, err := dynamic.NewForConfigAndClient(to, requests)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(to)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	cluster := &Cluster{Config: c, client: client, http: requests, base: base, asked: make(chan struct{}, maxAsked)}
	if err := cluster.openExec(to); err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return cluster, nil
}

// find is how the cluster is reached, and the namespace.
func (c Config) find() (*rest.Config, string, error) {
	if c.InCluster {
		to, namespace, err := inCluster(cmp.Or(c.accountDir, serviceAccount))
		return to, cmp.Or(c.Namespace, namespace), err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Namespace = c.Namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	to, err := config.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", errors.New("find the cluster: there is no kubeconfig: give --kubeconfig, or name it in KUBECONFIG")
	}
	if err != nil {
		return nil, "", fmt.Errorf("find the cluster: %w", err)
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace: %w", err)
	}
	return to, namespace, nil
}

// warner hands on what a cluster warns of.
type warner func(string)

// HandleWarningHeader is called for each warning of an answer.
func (w warner) HandleWarningHeader(code int, _ string, text string) {
	if w != nil && code == 299 && text != "" {
		w(text)
	}
}

var _ rest.WarningHandler = warner(nil)

// resources are where objects of a kind are. No more kinds are ever applied, so
// nothing has to be discovered.
var resources = map[string]schema.GroupVersionResource{
	"Secret":                {Version: "v1", Resource: "secrets"},
	"Service":               {Version: "v1", Resource: "services"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"Pod":                   {Version: "v1", Resource: "pods"},
	"Event":                 {Version: "v1", Resource: "events"},
	"Node":                  {Version: "v1", Resource: "nodes"},
	"StatefulSet":           {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"Deployment":            {Group: "apps", Version: "v1", Resource: "deployments"},
	"PodDisruptionBudget":   {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"CronJob":               {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"Job":                   {Group: "batch", Version: "v1", Resource: "jobs"},
	"Ingress":               {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"NetworkPolicy":         {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"HTTPRoute":             {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"},
}

// of is where an object belongs.
func (c *Cluster) of(o kube.Object) (dynamic.ResourceInterface, error) {
	r, ok := resources[o.Kind()]
	if !ok {
		return nil, fmt.Errorf("objects of kind %q are not applied", o.Kind())
	}
	namespace := o.Namespace()
	if namespace == "" {
		namespace = c.Namespace
	}
	return c.client.Resource(r).Namespace(namespace), nil
}

// get is nil for what is not there.
func (c *Cluster) get(ctx context.Context, o kube.Object) (kube.Object, error) {
	r, err := c.of(o)
	if err != nil {
		return nil, err
	}
	found, err := r.Get(ctx, o.Name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at %s: %w", named(o), err)
	}
	return found.Object, nil
}

func named(o kube.Object) string { return o.Kind() + " " + o.Name() }

// Change is what has become of an object.
type Change string

// The changes.
const (
	created   Change = "created"
	changed   Change = "changed"
	unchanged Change = "unchanged"
)

// Apply applies objects in order, and calls tell for each.
func (c *Cluster) Apply(ctx context.Context, all []kube.Object, tell func(kube.Object, Change)) error {
	for _, o := range all {
		change, err := c.apply(ctx, o)
		if err != nil {
			return err
		}
		tell(o, change)
	}
	return nil
}

func (c *Cluster) apply(ctx context.Context, o kube.Object) (Change, error) {
	was, err := c.get(ctx, o)
	if err != nil {
		return "", err
	}
	is, err := c.patch(ctx, o)
	switch {
	case err != nil:
		return "", err
	case was == nil:
		return created, nil
	case was.Version() != is.Version():
		return changed, nil
	}
	return unchanged, nil
}

// patch applies an object, and returns what it is then.
func (c *Cluster) patch(ctx context.Context, o kube.Object, dryRun ...string) (kube.Object, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", named(o), err)
	}
	r, err := c.of(o)
	if err != nil {
		return nil, err
	}
	is, err := r.Patch(ctx, o.Name(), types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manager, Force: &c.Force, DryRun: dryRun})
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", named(o), err)
	}
	return is.Object, nil
}

// UpToDate reports whether there is nothing to update: an object is not there yet,
// or applying it would change nothing of what it specifies.
func (c *Cluster) UpToDate(ctx context.Context, o kube.Object) (bool, error) {
	was, err := c.get(ctx, o)
	if err != nil || was == nil {
		return err == nil, err
	}
	is, err := c.patch(ctx, o, metav1.DryRunAll)
	return err == nil && was.Number("metadata", "generation") == is.Number("metadata", "generation"), err
}

// Known are the versions of a deployment's Secrets in the cluster.
func (c *Cluster) Known(ctx context.Context, deployment string) (map[string]kube.Version, error) {
	all, err := c.secrets(ctx, kube.VersionedOf(deployment))
	return kube.KnownOf(all), err
}

// Variables are those of a deployment that were made for it, as the cluster has
// them.
func (c *Cluster) Variables(ctx context.Context, deployment string) (variables []kube.Variable, err error) {
	all, err := c.secrets(ctx, kube.VariablesOf(deployment))
	for _, o := range all {
		if v, ok := kube.VariableOf(o); ok {
			variables = append(variables, v)
		}
	}
	return variables, err
}

func (c *Cluster) secrets(ctx context.Context, selector string) ([]kube.Object, error) {
	return c.list(ctx, resources["Secret"], selector)
}

// list are the objects of the namespace that a selector selects.
func (c *Cluster) list(ctx context.Context, of schema.GroupVersionResource, selector string) (all []kube.Object, err error) {
	list, err := c.client.Resource(of).Namespace(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", of.Resource, err)
	}
	for _, item := range list.Items {
		all = append(all, item.Object)
	}
	return all, nil
}
