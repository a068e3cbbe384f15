// What the user may do, by the roles of the API. It only decides which buttons are shown: the server decides what happens.
import { signal } from './html.js';
import { list } from './api.js';
import { hello, onChanges, generation } from './events.js';

/** The user's roles: by space and by org, sets of types. null until they came. */
export const roles = signal(null);

/** Loads the user's roles; again after a change of a role. */
export async function loadRoles() {
  const { resources } = await list('/v3/roles?user_guids=' + hello.value.user.guid);
  const by = {};
  for (const r of resources) {
    const of = r.relationships.space?.data?.guid ?? r.relationships.organization?.data?.guid;
    (by[of] ??= new Set()).add(r.type);
  }
  roles.value = by;
}

onChanges(changes => {
  if (changes.some(c => c.kind === 'role')) loadRoles().catch(() => {});
});
generation.subscribe(n => {
  if (n) loadRoles().catch(() => {});
});

const has = (guid, ...types) => types.some(t => roles.value?.[guid]?.has(t));

/**
 * What the user may do in a space: edit (push, tasks, ssh, rollback), operate (start, scale, restart,
 * set variables, bind, map), secrets (read the environment), credentials (read bindings), droplet
 * (download it: all but supporters). CC: the roles × routes table of the API.
 * @param {string} space
 */
export function mayIn(space) {
  if (hello.value?.admin) return { edit: true, operate: true, secrets: true, credentials: true, droplet: true };
  const edit = has(space, 'space_developer');
  const operate = edit || has(space, 'space_supporter');
  const reads = Boolean(hello.value?.admin_read_only);
  return { edit, operate, secrets: operate || reads, credentials: edit || reads, droplet: !operate || edit };
}

/** Whether the user may create apps anywhere. */
export const mayPush = () => Boolean(hello.value?.admin) || Object.values(roles.value ?? {}).some(s => s.has('space_developer'));

/** Whether the user may manage an org: its spaces, users and metadata. @param {string} org */
export const mayManageOrg = org => Boolean(hello.value?.admin) || has(org, 'organization_manager');

/** Whether the user may manage a space: its users, and what applies to it. @param {string} space @param {string} org */
export const mayManageSpace = (space, org) => mayManageOrg(org) || has(space, 'space_manager');

/** Whether the user is an administrator. */
export const isAdmin = () => Boolean(hello.value?.admin);

/** Whether the user sees everything but secrets: administrators, read-only ones, and global auditors. */
export const readsAll = () => Boolean(hello.value?.reads_all);

/** Whether the user sees what an administrator sees, such as the machine: not global auditors. */
export const readsMachine = () => isAdmin() || Boolean(hello.value?.admin_read_only);

/** What the user is, in words. */
export const rank = () =>
  isAdmin() ? 'Administrator' : readsMachine() ? 'Read-only administrator' : readsAll() ? 'Global auditor' : 'User';
