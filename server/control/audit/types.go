package audit

import (
	"maps"
	"slices"

	"cupola/store/cf"
)

// Type is what happened, in Cloud Controller's words.
type Type string

// The types of events, but for those of bindings and of roles.
const (
	// Of apps, and of what belongs to them. Cloud Controller has no events of unplaced processes and tasks and of refreshed bindings.
	AppCrash                    Type = "app.crash"
	AppCreate                   Type = "audit.app.create"
	AppUpdate                   Type = "audit.app.update"
	AppDelete                   Type = "audit.app.delete-request"
	AppStart                    Type = "audit.app.start"
	AppStop                     Type = "audit.app.stop"
	AppRestart                  Type = "audit.app.restart"
	AppApplyManifest            Type = "audit.app.apply_manifest"
	AppMapRoute                 Type = "audit.app.map-route"
	AppUnmapRoute               Type = "audit.app.unmap-route"
	AppSSHAuthorized            Type = "audit.app.ssh-authorized"
	AppSSHUnauthorized          Type = "audit.app.ssh-unauthorized"
	AppBuildCreate              Type = "audit.app.build.create"
	AppBuildStaged              Type = "audit.app.build.staged"
	AppBuildFailed              Type = "audit.app.build.failed"
	AppEnvShow                  Type = "audit.app.environment.show"
	AppVarsShow                 Type = "audit.app.environment_variables.show"
	AppDeploymentCreate         Type = "audit.app.deployment.create"
	AppDeploymentCancel         Type = "audit.app.deployment.cancel"
	AppDeploymentContinue       Type = "audit.app.deployment.continue"
	AppDropletCreate            Type = "audit.app.droplet.create"
	AppDropletUpload            Type = "audit.app.droplet.upload"
	AppDropletDownload          Type = "audit.app.droplet.download"
	AppDropletDelete            Type = "audit.app.droplet.delete"
	AppDropletMapped            Type = "audit.app.droplet.mapped"
	AppPackageCreate            Type = "audit.app.package.create"
	AppPackageUpload            Type = "audit.app.package.upload"
	AppPackageDownload          Type = "audit.app.package.download"
	AppPackageDelete            Type = "audit.app.package.delete"
	AppProcessCreate            Type = "audit.app.process.create"
	AppProcessDelete            Type = "audit.app.process.delete"
	AppProcessReady             Type = "audit.app.process.ready"
	AppProcessNotReady          Type = "audit.app.process.not-ready"
	AppProcessRescheduling      Type = "audit.app.process.rescheduling"
	AppProcessUpdate            Type = "audit.app.process.update"
	AppProcessScale             Type = "audit.app.process.scale"
	AppProcessTerminateInstance Type = "audit.app.process.terminate_instance"
	AppProcessCrash             Type = "audit.app.process.crash"
	AppProcessUnplaced          Type = "audit.app.process.unplaced"
	AppProcessRefreshBindings   Type = "audit.app.process.refresh_bindings"
	AppRevisionCreate           Type = "audit.app.revision.create"
	AppRevisionVarsShow         Type = "audit.app.revision.environment_variables.show"
	AppTaskCreate               Type = "audit.app.task.create"
	AppTaskCancel               Type = "audit.app.task.cancel"
	AppTaskUnplaced             Type = "audit.app.task.unplaced"

	// Of jobs of apps. Cloud Foundry's scheduler is not part of Cloud Controller, which has none of these.
	AppJobCreate     Type = "audit.app.job.create"
	AppJobUpdate     Type = "audit.app.job.update"
	AppJobDelete     Type = "audit.app.job.delete"
	AppJobSchedule   Type = "audit.app.job.schedule"
	AppJobUnschedule Type = "audit.app.job.unschedule"
	AppJobFail       Type = "audit.app.job.fail"
	AppJobSkip       Type = "audit.app.job.skip"

	// Of scaling policies. App Autoscaler is not part of Cloud Controller either.
	AppScalingPolicySet    Type = "audit.app.scaling_policy.set"
	AppScalingPolicyDelete Type = "audit.app.scaling_policy.delete"

	// Of routes and domains.
	RouteCreate        Type = "audit.route.create"
	RouteDelete        Type = "audit.route.delete-request"
	RouteShare         Type = "audit.route.share"
	RouteUnshare       Type = "audit.route.unshare"
	RouteTransferOwner Type = "audit.route.transfer-owner"
	RoutePolicyCreate  Type = "audit.route_policy.create"
	RoutePolicyUpdate  Type = "audit.route_policy.update"
	RoutePolicyDelete  Type = "audit.route_policy.delete"
	DomainCreate       Type = "audit.domain.create"
	DomainDelete       Type = "audit.domain.delete-request"

	DomainCertificateUpdate Type = "audit.domain.certificate.update" // not CC's
	DomainCertificateDelete Type = "audit.domain.certificate.delete" // not CC's

	// Of organizations, spaces and their quotas.
	OrgCreate        Type = "audit.organization.create"
	OrgUpdate        Type = "audit.organization.update"
	OrgDelete        Type = "audit.organization.delete-request"
	SpaceCreate      Type = "audit.space.create"
	SpaceUpdate      Type = "audit.space.update"
	SpaceDelete      Type = "audit.space.delete-request"
	OrgQuotaCreate   Type = "audit.organization_quota.create"
	OrgQuotaUpdate   Type = "audit.organization_quota.update"
	OrgQuotaDelete   Type = "audit.organization_quota.delete"
	OrgQuotaApply    Type = "audit.organization_quota.apply"
	SpaceQuotaCreate Type = "audit.space_quota.create"
	SpaceQuotaUpdate Type = "audit.space_quota.update"
	SpaceQuotaDelete Type = "audit.space_quota.delete"
	SpaceQuotaApply  Type = "audit.space_quota.apply"
	SpaceQuotaRemove Type = "audit.space_quota.remove"

	// Of buildpacks and stacks.
	BuildpackCreate Type = "audit.buildpack.create"
	BuildpackUpdate Type = "audit.buildpack.update"
	BuildpackDelete Type = "audit.buildpack.delete"
	BuildpackUpload Type = "audit.buildpack.upload"
	StackCreate     Type = "audit.stack.create"
	StackUpdate     Type = "audit.stack.update"
	StackDelete     Type = "audit.stack.delete"

	// Of service brokers, and of what they offer. Cloud Controller has no event of an orphan that is given up.
	ServiceBrokerCreate         Type = "audit.service_broker.create"
	ServiceBrokerUpdate         Type = "audit.service_broker.update"
	ServiceBrokerDelete         Type = "audit.service_broker.delete"
	ServiceBrokerAbandonOrphan  Type = "audit.service_broker.abandon_orphan"
	ServiceOfferingCreate       Type = "audit.service.create"
	ServiceOfferingUpdate       Type = "audit.service.update"
	ServiceOfferingDelete       Type = "audit.service.delete"
	ServicePlanCreate           Type = "audit.service_plan.create"
	ServicePlanUpdate           Type = "audit.service_plan.update"
	ServicePlanDelete           Type = "audit.service_plan.delete"
	ServicePlanVisibilityUpdate Type = "audit.service_plan_visibility.update"
	ServicePlanVisibilityDelete Type = "audit.service_plan_visibility.delete"

	// Of service instances.
	ServiceInstanceCreate      Type = "audit.service_instance.create"
	ServiceInstanceUpdate      Type = "audit.service_instance.update"
	ServiceInstanceDelete      Type = "audit.service_instance.delete"
	ServiceInstanceStartCreate Type = "audit.service_instance.start_create"
	ServiceInstanceStartUpdate Type = "audit.service_instance.start_update"
	ServiceInstanceStartDelete Type = "audit.service_instance.start_delete"
	ServiceInstancePurge       Type = "audit.service_instance.purge"
	ServiceInstanceShare       Type = "audit.service_instance.share"
	ServiceInstanceUnshare     Type = "audit.service_instance.unshare"
	ServiceBackupCreate        Type = "audit.service_instance.backup.create"   // not CC's
	ServiceBackupDelete        Type = "audit.service_instance.backup.delete"   // not CC's
	ServiceBackupDownload      Type = "audit.service_instance.backup.download" // not CC's
	ServiceBackupRestore       Type = "audit.service_instance.backup.restore"  // not CC's
	UserProvidedCreate         Type = "audit.user_provided_service_instance.create"
	UserProvidedUpdate         Type = "audit.user_provided_service_instance.update"
	UserProvidedDelete         Type = "audit.user_provided_service_instance.delete"
	UserProvidedShow           Type = "audit.user_provided_service_instance.show"

	UserSSHKeyAdd    Type = "audit.user.ssh_key_add"    // not CC's
	UserSSHKeyRemove Type = "audit.user.ssh_key_remove" // not CC's
)

// bindings are how events call the kinds of bindings to services.
var bindings = []string{"service_binding", "service_key", "service_route_binding"}

// Of is the type of what happened to a kind of things, like "service_key" and
// "create". Write refuses one that is not in the list.
func Of(kind, verb string) Type { return Type("audit." + kind + "." + verb) }

// OfRole is the type of a role that a user gets ("add") or loses ("remove").
func OfRole(role cf.RoleType, verb string) Type {
	return Type("audit.user." + string(role) + "_" + verb)
}

// known are all types.
var known = list()

func list() map[Type]bool {
	all := map[Type]bool{}
	for _, t := range []Type{
		AppCrash, AppCreate, AppUpdate, AppDelete, AppStart, AppStop, AppRestart, AppApplyManifest, AppMapRoute, AppUnmapRoute,
		AppSSHAuthorized, AppSSHUnauthorized, AppBuildCreate, AppBuildStaged, AppBuildFailed, AppEnvShow, AppVarsShow, AppRevisionVarsShow,
		AppDropletDownload, AppPackageDownload, AppProcessCreate, AppProcessDelete, AppProcessReady, AppProcessNotReady, AppProcessRescheduling, AppDeploymentCreate, AppDeploymentCancel, AppDeploymentContinue,
		AppDropletCreate, AppDropletUpload, AppDropletDelete, AppDropletMapped, AppPackageCreate, AppPackageUpload,
		AppPackageDelete, AppProcessUpdate, AppProcessScale, AppProcessTerminateInstance, AppProcessCrash, AppProcessUnplaced,
		AppProcessRefreshBindings, AppRevisionCreate, AppTaskCreate, AppTaskCancel, AppTaskUnplaced, AppJobCreate, AppJobUpdate, AppJobDelete, AppJobSchedule, AppJobUnschedule,
		AppJobFail, AppJobSkip, AppScalingPolicySet, AppScalingPolicyDelete, RouteCreate, RouteDelete, RouteShare,
		RouteUnshare, RouteTransferOwner, RoutePolicyCreate, RoutePolicyUpdate, RoutePolicyDelete, DomainCreate, DomainDelete, DomainCertificateUpdate, DomainCertificateDelete,
		OrgCreate, OrgUpdate, OrgDelete, SpaceCreate, SpaceUpdate, SpaceDelete, OrgQuotaCreate, OrgQuotaUpdate, OrgQuotaDelete,
		OrgQuotaApply, SpaceQuotaCreate, SpaceQuotaUpdate, SpaceQuotaDelete, SpaceQuotaApply, SpaceQuotaRemove, BuildpackCreate,
		BuildpackUpdate, BuildpackDelete, BuildpackUpload, StackCreate, StackUpdate, StackDelete, ServiceBrokerCreate,
		ServiceBrokerUpdate, ServiceBrokerDelete, ServiceBrokerAbandonOrphan, ServiceOfferingCreate, ServiceOfferingUpdate,
		ServiceOfferingDelete, ServicePlanCreate, ServicePlanUpdate, ServicePlanDelete, ServicePlanVisibilityUpdate,
		ServicePlanVisibilityDelete, ServiceInstanceCreate, ServiceInstanceUpdate, ServiceInstanceDelete,
		ServiceInstanceStartCreate, ServiceInstanceStartUpdate, ServiceInstanceStartDelete, ServiceInstancePurge,
		ServiceInstanceShare, ServiceInstanceUnshare, ServiceBackupCreate, ServiceBackupDelete, ServiceBackupDownload, ServiceBackupRestore, UserProvidedCreate, UserProvidedUpdate, UserProvidedDelete,
		UserProvidedShow, UserSSHKeyAdd, UserSSHKeyRemove,
	} {
		all[t] = true
	}
	for _, kind := range bindings {
		for _, verb := range []string{"create", "update", "delete", "start_create", "start_delete", "show"} {
			all[Of(kind, verb)] = true
		}
	}
	for _, role := range cf.RoleTypes {
		all[OfRole(role, "add")], all[OfRole(role, "remove")] = true, true
	}
	return all
}

// types lists the types of all events, sorted.
func types() []Type { return slices.Sorted(maps.Keys(known)) }
