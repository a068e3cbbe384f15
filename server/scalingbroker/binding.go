package scalingbroker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cupola/server/control"
	"cupola/server/control/autoscaling"
	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

var (
	errNoApp      = &refusal{Status: http.StatusBadRequest, Code: "RequiresApp", Text: "error: service must be bound to an application; Please provide a GUID of an app!"}
	errNoBinding  = &refusal{Status: http.StatusNotFound, Text: "binding does not exist"}
	errOtherBound = &refusal{Status: http.StatusConflict, Text: "error: an autoscaler service instance is already bound to the application and multiple bindings are not supported"}
)

// bind binds an app, and sets its policy.
func (b *broker) bind(r *http.Request) (a answer, err error) {
	q, err := decode(r)
	if err != nil {
		return a, err
	}
	a.Status = http.StatusCreated
	err = b.in(r, func(c *control.Session) error {
		n, err := store.ScalingBindings.Find(c.Tx, r.PathValue("binding"))
		switch {
		case err != nil:
			return err
		case n != nil && (n.InstanceGUID != r.PathValue("instance") || n.Request != builtin.Text(q)):
			return errConflict
		case n != nil:
			a.Status = http.StatusOK
		default:
			if n, err = b.add(c, r, q); err != nil {
				return err
			}
		}
		a.Body = object{"credentials": b.credentials(n)}
		return nil
	})
	return a, err
}

// add makes a binding. One that the app has with the same instance, as when credentials are rotated,
// ends.
func (b *broker) add(c *control.Session, r *http.Request, q request) (*cf.ScalingBinding, error) {
	i, err := store.ScalingInstances.Find(c.Tx, r.PathValue("instance"))
	if err != nil || i == nil {
		return nil, control.OrElse(err, errNoInstance)
	}
	p, err := q.bindingParameters(c.Tx.Now)
	if err != nil {
		return nil, err
	}
	app, err := appOf(c.Tx, q, p, i)
	if err != nil {
		return nil, err
	}
	if err := release(c.Tx, app, i); err != nil {
		return nil, err
	}
	n := &cf.ScalingBinding{Resource: cf.Resource{GUID: r.PathValue("binding")}, InstanceGUID: i.GUID, AppGUID: app, Request: builtin.Text(q)}
	if p.Credential != certificateCredential {
		n.Password = rand.Text()
	}
	if err := store.ScalingBindings.Insert(c.Tx, n); err != nil {
		return nil, err
	}
	if p.Known != "" {
		return n, set(c, n.AppGUID, p.Known)
	}
	return n, replace(c, n.AppGUID, "", i.DefaultPolicy)
}

// appOf is the app that a binding is of: the one that is bound, or of a service key the one that its parameters name, in the space of
// the service instance.
func appOf(tx *store.Tx, q request, p autoscaling.Parameters, i *cf.ScalingInstance) (string, error) {
	switch {
	case q.app() != "" && p.AppGUID != "":
		return "", builtin.Refuse(http.StatusBadRequest, "error: app GUID provided in both, binding resource and binding configuration:\n\tfrom binding-request: %s", p.AppGUID)
	case q.app() != "":
		return q.app(), nil
	case p.AppGUID == "":
		return "", errNoApp
	}
	instance, err := store.ServiceInstances.Get(tx, i.GUID)
	if err != nil {
		return "", err
	}
	app, err := store.Apps.Find(tx, p.AppGUID)
	if err == nil && (app == nil || app.SpaceGUID != instance.SpaceGUID) {
		err = &refusal{Status: http.StatusUnprocessableEntity, Code: "AppNotInSpace", Text: fmt.Sprintf("app %s not found in space %s", p.AppGUID, instance.SpaceGUID)}
	}
	return p.AppGUID, err
}

// release ends the binding that an app has with an instance. One with another instance is refused,
// unless that was purged: no one can unbind from it.
func release(tx *store.Tx, appGUID string, i *cf.ScalingInstance) error {
	was, err := autoscaling.BindingOf(tx, appGUID)
	if err != nil || was == nil {
		return err
	}
	if was.InstanceGUID == i.GUID {
		return store.ScalingBindings.Delete(tx, was.GUID)
	}
	there, err := store.ServiceInstances.Find(tx, was.InstanceGUID)
	if err != nil || there != nil {
		return control.OrElse(err, errOtherBound)
	}
	return store.ScalingInstances.Delete(tx, was.InstanceGUID)
}

// credentials are what an app submits custom metrics with (App Autoscaler: models/custom_metrics.go).
func (b *broker) credentials(n *cf.ScalingBinding) object {
	m := object{}
	if strings.HasPrefix(b.URL, "https:") {
		m["mtls_url"] = b.URL
	}
	if n.Password != "" {
		m["url"], m["username"], m["password"] = b.URL, n.GUID, n.Password
	}
	return object{"custom_metrics": m}
}

// binding is what the request names.
func binding(tx *store.Tx, r *http.Request) (*cf.ScalingBinding, error) {
	n, err := store.ScalingBindings.Find(tx, r.PathValue("binding"))
	if err != nil || n == nil || n.InstanceGUID != r.PathValue("instance") {
		return nil, control.OrElse(err, errNoBinding)
	}
	return n, nil
}

// fetchBinding shows a binding with the policy that its app has.
func (b *broker) fetchBinding(r *http.Request) (a answer, err error) {
	err = b.Store.Read(r.Context(), func(tx *store.Tx) error {
		n, err := binding(tx, r)
		if err != nil {
			return err
		}
		policy, err := autoscaling.Of(tx, n.AppGUID)
		if err := control.IfFound(err); err != nil {
			return err
		}
		a = answer{Status: http.StatusOK, Body: object{"credentials": b.credentials(n)}}
		if policy != nil {
			a.Body["parameters"] = policy
		}
		return nil
	})
	return a, err
}

// unbind ends a binding, and the policy of its app.
func (b *broker) unbind(r *http.Request) (a answer, err error) {
	a = answer{Status: http.StatusOK, Body: object{}}
	err = b.in(r, func(c *control.Session) error {
		n, err := binding(c.Tx, r)
		if errors.Is(err, errNoBinding) {
			a.Status = http.StatusGone
			return nil
		}
		if err != nil {
			return err
		}
		if err := store.ScalingBindings.Delete(c.Tx, n.GUID); err != nil {
			return err
		}
		return set(c, n.AppGUID, "")
	})
	return a, err
}
