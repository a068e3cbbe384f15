package kube

// Finished are the objects of the phase Full, of those of the phase Canary that
// are other then.
func Finished(all []Object) (changed []Object) {
	for _, o := range all {
		if full, is := FullOf(o); is {
			changed = append(changed, full)
		}
	}
	return changed
}

// FullOf is an object of the phase Canary as it is in the phase Full; false for
// one that is the same.
func FullOf(o Object) (Object, bool) {
	if o.Number("spec", "updateStrategy", "rollingUpdate", "partition") == 0 {
		return o, false
	}
	full, spec, strategy, rolling := copied(o), copied(o.Map("spec")), copied(o.Map("spec", "updateStrategy")), copied(o.Map("spec", "updateStrategy", "rollingUpdate"))
	rolling["partition"] = 0
	strategy["rollingUpdate"] = rolling
	spec["updateStrategy"] = strategy
	full["spec"] = spec
	return full, true
}
