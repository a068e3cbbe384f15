/*
 * launch starts one container for the daemon: see package
 * cupola/runtime/container/launch, which writes its request. It takes the place of
 * libcontainer (cmd/starter) for the first process of a container.
 *
 *     launch [--check]
 *
 * With --check it only reads the request.
 *
 * It is written in C because the system calls that enter namespaces want a process
 * with one thread, which a Go program is not; and because a start pays for each
 * page that a program touches. There are three processes:
 *
 *   - launch itself stays in the host's namespaces with the host's root. It clones
 *     the mounts that the container gets, and talks to the daemon.
 *   - enter joins the container's user namespace, makes the other namespaces and
 *     the first process, and ends. On cgroup v2 it begins in the container's cgroup.
 *     The mount namespace is a copy of the engine's small one, not of the host's:
 *     to copy and give up each mount of each container takes milliseconds.
 *   - first builds the file system from the clones, gives up all rights and executes
 *     the container's init, once the daemon has recorded it.
 *
 * Each ends when the one before it does, until first executes the init: a start
 * that is cut off leaves nothing that runs.
 *
 * No path of the container is resolved with the host's rights, and none can lead
 * out of its root: openat2 sees to that. Mounts are attached by descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif
#ifndef MS_PRIVATE
#define MS_PRIVATE (1 << 18)
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum {
	REQUEST_MAX = 8 << 20, /* bytes */
	MESSAGE_MAX = 1024,    /* bytes of an error */
	PASSWD_MAX = 1 << 20,  /* bytes of /etc/passwd in which a home is looked for */
	FIRST_FILE = 3,        /* the first inherited descriptor: standard input, output and error of the container come first */
	STDIO = 3,
};

enum kind { FILE_SYSTEM, BIND, READ_ONLY, MASK };

/* step is one change of the container's mounts. */
struct step {
	enum kind kind;
	const char *type, *source, *target, *data;
	unsigned long attributes, recursive;
	int clone; /* of what is bound */
};

struct request {
	const char *rootfs, *userns, *mountns, *netns, *cgroup, *hostname, *cwd, *oom;
	unsigned long stdio, files, cgroups, uid, gid;
	unsigned long long bounding, effective, permitted, inheritable, ambient;
	struct step *steps;
	gid_t *groups;
	char **args, **env;
	size_t n_steps, n_groups, n_args, n_env;
};

/* report is where an error goes: to the daemon, or to launch. */
static int report = STDOUT_FILENO;
static int talks_to_daemon = 1;

/* fail says what is wrong and ends the process. A line is one answer. */
static _Noreturn void fail(const char *format, ...)
{
	char text[MESSAGE_MAX], line[MESSAGE_MAX + 16];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	int n = snprintf(line, sizeof line, talks_to_daemon ? "error %s\n" : "error %s", text);
	if (write(report, line, n) < 0)
		_exit(2);
	_exit(1);
}

#define FAIL(what, ...) fail(what ": %s", ##__VA_ARGS__, strerror(errno))

/* ---- the request ---- */

static unsigned long long number(const char *s)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno)
		fail("request: %s is not a number", s);
	return n;
}

/* id reads a user or group; the highest number means none. */
static unsigned long id(const char *s)
{
	unsigned long long n = number(s);
	if (n >= UINT_MAX)
		fail("request: %s is not a user or group", s);
	return n;
}

/* field returns the next string of the request. */
static char *field(char **at, const char *end)
{
	char *s = *at;
	if (s >= end)
		fail("request: it ends within a line");
	*at = s + strlen(s) + 1; /* the last byte is 0 */
	return s;
}

static void add_step(struct request *r, const char *name, char **at, const char *end)
{
	struct step *s = &r->steps[r->n_steps++];
	s->clone = -1;
	if (!strcmp(name, "mount")) {
		s->kind = FILE_SYSTEM;
		s->type = field(at, end);
		s->source = field(at, end);
		s->target = field(at, end);
		s->attributes = number(field(at, end));
		s->data = field(at, end);
	} else if (!strcmp(name, "bind")) {
		s->kind = BIND;
		s->source = field(at, end);
		s->target = field(at, end);
		s->attributes = number(field(at, end));
		s->recursive = number(field(at, end));
	} else {
		s->kind = !strcmp(name, "readonly") ? READ_ONLY : MASK;
		s->target = field(at, end);
	}
}

/* set reads one line of the request: a name and its values. */
static void set(struct request *r, const char *name, char **at, const char *end)
{
	const struct { const char *name; const char **value; } texts[] = {
		{"rootfs", &r->rootfs}, {"userns", &r->userns}, {"mountns", &r->mountns}, {"netns", &r->netns}, {"cgroup", &r->cgroup}, {"hostname", &r->hostname}, {"cwd", &r->cwd}, {"oom", &r->oom},
	};
	const struct { const char *name; unsigned long *value; } numbers[] = {
		{"stdio", &r->stdio}, {"files", &r->files}, {"cgroups", &r->cgroups},
	};
	const struct { const char *name; unsigned long long *value; } sets[] = {
		{"bounding", &r->bounding}, {"effective", &r->effective}, {"permitted", &r->permitted}, {"inheritable", &r->inheritable}, {"ambient", &r->ambient},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!strcmp(name, texts[i].name)) {
			*texts[i].value = field(at, end);
			return;
		}
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].value = number(field(at, end));
			return;
		}
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		if (!strcmp(name, sets[i].name)) {
			*sets[i].value = number(field(at, end));
			return;
		}
	if (!strcmp(name, "uid"))
		r->uid = id(field(at, end));
	else if (!strcmp(name, "gid"))
		r->gid = id(field(at, end));
	else if (!strcmp(name, "arg"))
		r->args[r->n_args++] = field(at, end);
	else if (!strcmp(name, "env"))
		r->env[r->n_env++] = field(at, end);
	else if (!strcmp(name, "group"))
		r->groups[r->n_groups++] = id(field(at, end));
	else if (!strcmp(name, "mount") || !strcmp(name, "bind") || !strcmp(name, "readonly") || !strcmp(name, "mask"))
		add_step(r, name, at, end);
	else
		fail("request: unknown line %s", name);
}

static void *array(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p)
		fail("request: out of memory");
	return p;
}

/* parse reads strings that each end with a 0 byte. */
static void parse(struct request *r, char *text, size_t size)
{
	size_t strings = 2; /* one more environment variable, and the end */
	if (!size || text[size - 1])
		fail("request: its last byte is not 0");
	for (size_t i = 0; i < size; i++)
		strings += !text[i];
	r->steps = array(strings, sizeof *r->steps);
	r->groups = array(strings, sizeof *r->groups);
	r->args = array(strings, sizeof *r->args);
	r->env = array(strings, sizeof *r->env);
	for (char *at = text; at < text + size;)
		set(r, field(&at, text + size), &at, text + size);
	if (!r->rootfs || !r->userns || !r->mountns || !r->hostname || !r->cwd || !r->oom || !r->n_args)
		fail("request: it lacks a line");
	if (r->files > 64 || r->cgroups > r->files)
		fail("request: %lu files with %lu cgroups; at most 64 are accepted", r->files, r->cgroups);
}

static void read_full(char *to, size_t size)
{
	while (size) {
		ssize_t n = read(STDIN_FILENO, to, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("request: it ends early");
		to += n;
		size -= n;
	}
}

static void read_request(struct request *r)
{
	unsigned int size;
	read_full((char *)&size, sizeof size);
	if (size > REQUEST_MAX)
		fail("request: it is longer than %d bytes", REQUEST_MAX);
	char *text = array(size + 1, 1);
	read_full(text, size);
	parse(r, text, size);
}

/* ---- mounts by descriptor ---- */

static int open_tree(int at, const char *path, unsigned int flags)
{
	return syscall(SYS_open_tree, at, path, flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static int set_attributes(int tree, const char *path, unsigned int flags, unsigned long attributes, unsigned long propagation)
{
	struct mount_attr attr = {.attr_set = attributes, .propagation = propagation};
	return syscall(SYS_mount_setattr, tree, path, flags, &attr, sizeof attr);
}

static int attach(int tree, int target)
{
	return syscall(SYS_move_mount, tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* clone_mounts clones, with the rights of the host's root, what the container gets of the host. */
static int clone_mounts(struct request *r)
{
	for (size_t i = 0; i < r->n_steps; i++) {
		struct step *s = &r->steps[i];
		if (s->kind != BIND)
			continue;
		unsigned int all = s->recursive ? AT_RECURSIVE : 0;
		s->clone = open_tree(AT_FDCWD, s->source, all);
		if (s->clone < 0)
			FAIL("open %s", s->source);
		if (set_attributes(s->clone, "", AT_EMPTY_PATH | all, s->attributes, MS_PRIVATE))
			FAIL("restrict the mount of %s", s->source);
	}
	int root = open_tree(AT_FDCWD, r->rootfs, AT_RECURSIVE);
	if (root < 0)
		FAIL("open root file system %s", r->rootfs);
	if (set_attributes(root, "", AT_EMPTY_PATH | AT_RECURSIVE, 0, MS_PRIVATE))
		FAIL("make %s private", r->rootfs);
	return root;
}

/* open_in opens a path as if root were /. */
static int open_in(int root, const char *path, int flags, unsigned long long resolve)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve};
	int fd;
	do
		fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	while (fd < 0 && errno == EAGAIN); /* something was renamed meanwhile */
	return fd;
}

/* make_one makes what is missing in dir: a directory, or an empty file. */
static int make_one(int dir, const char *name, int file)
{
	if (!strcmp(name, "..") || !strcmp(name, ".")) {
		errno = EINVAL;
		return -1;
	}
	if (file)
		return openat(dir, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (mkdirat(dir, name, 0755))
		return -1;
	return openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* mount_point opens where something is mounted, and makes what is missing of the path. */
static int mount_point(int root, const char *path, int file, unsigned long long resolve)
{
	int dir = open_in(root, path, O_PATH, resolve);
	if (dir >= 0 || errno != ENOENT)
		return dir;
	char prefix[PATH_MAX];
	if (strlen(path) >= sizeof prefix) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(prefix, path);
	dir = open_in(root, "/", O_PATH, resolve);
	for (char *name = prefix; dir >= 0 && *name;) {
		name += strspn(name, "/");
		char *end = name + strcspn(name, "/"), after = *end;
		if (end == name)
			break;
		int last = !end[strspn(end, "/")];
		*end = 0;
		int next = open_in(root, prefix, O_PATH, resolve);
		if (next < 0 && errno == ENOENT)
			next = make_one(dir, name, file && last);
		close(dir);
		dir = next;
		*end = after;
		name = end;
	}
	return dir;
}

/* check_mount_point refuses to hide the root, and what the kernel tells in /proc. */
static void check_mount_point(int root, int at, const char *path)
{
	struct stat here, top;
	struct statfs fs;
	if (fstat(at, &here) || fstat(root, &top) || fstatfs(at, &fs))
		FAIL("look at mount point %s", path);
	if (here.st_dev == top.st_dev && here.st_ino == top.st_ino)
		fail("mount point %s is the root directory", path);
	if (fs.f_type == PROC_SUPER_MAGIC)
		fail("mount point %s is inside /proc", path);
}

/* configure sets the options of a file system: a list like "mode=755,newinstance". */
static int configure(int context, const char *options)
{
	char list[256], *rest = list;
	if (strlen(options) >= sizeof list) {
		errno = EINVAL;
		return -1;
	}
	strcpy(list, options);
	for (char *option; (option = strsep(&rest, ","));) {
		char *value = strchr(option, '=');
		if (value)
			*value++ = 0;
		if (*option && syscall(SYS_fsconfig, context, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, option, value, 0))
			return -1;
	}
	return 0;
}

/* new_mount makes a file system that is mounted nowhere yet. */
static int new_mount(const char *type, const char *source, const char *options, unsigned long attributes)
{
	int context = syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), tree = -1;
	if (context < 0)
		return -1;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "source", source, 0) && !configure(context, options) &&
	    !syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		tree = syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
	int err = errno;
	close(context);
	errno = err;
	return tree;
}

static int is_directory(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISDIR(st.st_mode);
}

/* mount_at does one step before the root is the container's. */
static void mount_at(int root, struct step *s)
{
	/* The kernel's own files are where they are expected, whatever the image has there. */
	int strict = s->kind == FILE_SYSTEM && !strcmp(s->type, "proc");
	int at = mount_point(root, s->target, s->kind == BIND && !is_directory(s->clone), strict ? RESOLVE_NO_SYMLINKS : 0);
	if (at < 0 && strict && errno == ELOOP)
		fail("mount point %s: it must be an ordinary directory", s->target);
	if (at < 0)
		FAIL("open mount point %s", s->target);
	if (strict && !is_directory(at))
		fail("mount point %s: it must be an ordinary directory", s->target);
	check_mount_point(root, at, s->target);
	int tree = s->kind == BIND ? s->clone : new_mount(s->type, s->source, s->data, s->attributes);
	if (tree < 0)
		FAIL("make file system %s for %s", s->type, s->target);
	if (attach(tree, at))
		FAIL("mount %s", s->target);
	close(tree);
	close(at);
}

/* pivot makes the file system at root, which is mounted, the only one there is. */
static void pivot(int root)
{
	int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old < 0 || fchdir(root) || syscall(SYS_pivot_root, ".", ".") || fchdir(old) || syscall(SYS_umount2, ".", MNT_DETACH) || chdir("/"))
		FAIL("change the root file system");
	close(old);
}

static void make_read_only(struct step *s)
{
	int at = open(s->target, O_PATH | O_CLOEXEC);
	if (at < 0 && errno == ENOENT)
		return;
	int tree = at < 0 ? -1 : open_tree(at, "", AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0 || set_attributes(tree, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0) || attach(tree, at))
		FAIL("make %s read-only", s->target);
	close(tree);
	close(at);
}

/* mask hides a file behind /dev/null, and a directory behind an empty one: shared, which is the same for all. */
static void mask(struct step *s, int *shared)
{
	int at = open(s->target, O_PATH | O_CLOEXEC), tree;
	if (at < 0 && errno == ENOENT)
		return;
	if (at < 0)
		FAIL("open %s", s->target);
	if (!is_directory(at))
		tree = open_tree(AT_FDCWD, "/dev/null", 0);
	else if (*shared < 0)
		tree = *shared = new_mount("tmpfs", "tmpfs", "ro,nr_blocks=1,nr_inodes=1", MOUNT_ATTR_RDONLY);
	else
		tree = open_tree(*shared, "", AT_EMPTY_PATH);
	if (tree < 0 || attach(tree, at))
		FAIL("mask %s", s->target);
	if (tree != *shared)
		close(tree);
	close(at);
}

static void build_root(struct request *r, int root)
{
	int here = open("/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (here < 0 || attach(root, here))
		FAIL("mount %s", r->rootfs);
	close(here);
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].kind == FILE_SYSTEM || r->steps[i].kind == BIND)
			mount_at(root, &r->steps[i]);
	pivot(root);
	int cwd = mount_point(root, r->cwd, 0, 0);
	if (cwd < 0)
		FAIL("make working directory %s", r->cwd);
	close(cwd);
	close(root);
}

static void restrict_root(struct request *r)
{
	int shared = -1;
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].kind == READ_ONLY)
			make_read_only(&r->steps[i]);
	/* Not the image's: a masked file must read as empty. */
	struct stat null;
	if (stat("/dev/null", &null) || !S_ISCHR(null.st_mode) || null.st_rdev != 0x103)
		fail("/dev/null is not the null device");
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].kind == MASK)
			mask(&r->steps[i], &shared);
	if (shared >= 0)
		close(shared);
}

/* ---- the first process ---- */

/* add_home adds the HOME of the user's account, or /, unless there is one. */
static void add_home(struct request *r)
{
	for (size_t i = 0; i < r->n_env; i++)
		if (!strncmp(r->env[i], "HOME=", 5))
			return;
	static char home[PATH_MAX + 8] = "HOME=/";
	r->env[r->n_env++] = home;
	int root = open("/", O_PATH | O_CLOEXEC), fd = open_in(root, "/etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	close(root);
	struct stat st;
	char *text = malloc(PASSWD_MAX + 1), *rest = text;
	if (fd >= 0 && text && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		ssize_t size = 0, n;
		while (size < PASSWD_MAX && (n = read(fd, text + size, PASSWD_MAX - size)) > 0)
			size += n;
		text[size] = 0;
		for (char *line; (line = strsep(&rest, "\n"));) {
			char *fields[6] = {0}, *end;
			for (int i = 0; i < 6; i++)
				fields[i] = strsep(&line, ":");
			if (!fields[5] || !*fields[2] || strtoul(fields[2], &end, 10) != r->uid || *end)
				continue;
			snprintf(home, sizeof home, "HOME=%s", fields[5]);
			break;
		}
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

static void drop_bounding(struct request *r)
{
	for (int cap = 0; cap < 64; cap++)
		if (!(r->bounding >> cap & 1) && prctl(PR_CAPBSET_DROP, cap) && errno != EINVAL)
			FAIL("drop capability %d", cap);
}

static void set_capabilities(struct request *r)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){r->effective >> 32 * i, r->permitted >> 32 * i, r->inheritable >> 32 * i};
	if (syscall(SYS_capset, &head, data) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		FAIL("set capabilities");
	for (int cap = 0; cap < 64; cap++)
		if (r->ambient >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0))
			FAIL("raise capability %d", cap);
}

/* become_user gives up what the container's processes may not do, and enters the
 * working directory: as root if that may, else as the user. */
static void become_user(struct request *r)
{
	int entered = !chdir(r->cwd);
	if (!entered && errno != EACCES && errno != EPERM)
		FAIL("enter working directory %s", r->cwd);
	drop_bounding(r);
	if (prctl(PR_SET_KEEPCAPS, 1) || setgroups(r->n_groups, r->groups) || setresgid(r->gid, r->gid, r->gid) || setresuid(r->uid, r->uid, r->uid))
		FAIL("become user %lu:%lu", r->uid, r->gid);
	if (!entered && chdir(r->cwd))
		FAIL("enter working directory %s", r->cwd);
	char path[PATH_MAX];
	long n = syscall(SYS_getcwd, path, sizeof path);
	if (n < 0 || path[0] != '/')
		fail("working directory %s is outside of the container", r->cwd);
	if (prctl(PR_SET_KEEPCAPS, 0))
		FAIL("clear kept capabilities");
	set_capabilities(r);
}

/* place_files moves the inherited files to where the init expects them: standard
 * input, output and error, then the others from descriptor 3. */
static void place_files(struct request *r)
{
	for (unsigned long i = 0; i < STDIO + r->files; i++)
		if (dup2(FIRST_FILE + i, i) < 0)
			FAIL("inherit descriptor %lu", i);
	if (syscall(SYS_close_range, STDIO + r->files, ~0U, CLOSE_RANGE_CLOEXEC))
		FAIL("close descriptors");
}

static void die_with_parent(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		FAIL("end with the daemon");
}

static _Noreturn void first(struct request *r, int root)
{
	die_with_parent();
	if (setsid() < 0 || sethostname(r->hostname, strlen(r->hostname)))
		FAIL("set up the session and host name");
	umask(022);
	build_root(r, root);
	restrict_root(r);
	add_home(r);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		FAIL("set no_new_privs");
	become_user(r);
	die_with_parent(); /* it was cleared with the user */
	char go;
	if (send(report, "ready", 5, MSG_NOSIGNAL) < 0 || recv(report, &go, 1, 0) != 1)
		_exit(1); /* launch has ended */
	place_files(r);
	if (prctl(PR_SET_PDEATHSIG, 0))
		FAIL("outlive the daemon");
	/* The container counts as running from the exec on: what is neither blocked nor caught, until the init has blocked it itself, does not reach PID 1. */
	sigset_t all;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL))
		FAIL("block signals");
	execve(r->args[0], r->args, r->env);
	FAIL("exec %s", r->args[0]);
}

/* ---- cgroups and namespaces ---- */

/* fork_into starts a child that is in the cgroup of v2 from its first moment: the kernel takes
 * as long for it as for any other, while to move a process takes milliseconds. */
static pid_t fork_into(int cgroup)
{
	/* The kernel's clone_args as of Linux 5.7. */
	struct {
		unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
	} args = {.flags = 0x200000000ULL /* CLONE_INTO_CGROUP */, .exit_signal = SIGCHLD, .cgroup = cgroup};
	return syscall(SYS_clone3, &args, sizeof args);
}

struct cgroups {
	int first, count; /* descriptors of tasks files */
	int ns;           /* the answer, or a negative error */
};

/* join_cgroups moves itself into the cgroups and makes their namespace. It shares
 * launch's memory and descriptors, and makes system calls alone. */
static int join_cgroups(void *arg)
{
	struct cgroups *c = arg;
	c->ns = 0;
	for (int n = 0; n < c->count && !c->ns; n++)
		if (write(c->first + n, "0", 1) < 0)
			c->ns = -errno;
	if (!c->ns && unshare(CLONE_NEWCGROUP))
		c->ns = -errno;
	if (!c->ns && (c->ns = open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC)) < 0)
		c->ns = -errno;
	_exit(0);
}

/* cgroup_namespace makes the cgroup namespace of the container, which belongs to
 * the host's root, so that nothing in the container has any right over it. No
 * process of this program stays in the cgroups. */
static int cgroup_namespace(struct request *r)
{
	static char stack[16 << 10] __attribute__((aligned(16)));
	struct cgroups c = {FIRST_FILE + STDIO, r->cgroups, -ECHILD};
	int pid = clone(join_cgroups, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &c);
	if (pid < 0)
		FAIL("make cgroup namespace");
	while (waitpid(pid, 0, 0) < 0 && errno == EINTR)
		;
	errno = -c.ns;
	if (c.ns < 0)
		FAIL("make cgroup namespace");
	return c.ns;
}

static int open_path(const char *what, const char *path, int flags)
{
	int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		FAIL("open %s %s", what, path);
	return fd;
}

/* enter joins and makes the namespaces, and starts the first process as a child of launch. */
static _Noreturn void enter(struct request *r, int root, int userns, int mountns, int netns, int cgroupns)
{
	die_with_parent();
	/* Before the user namespace, in which there is no right to join them. */
	if (cgroupns >= 0 && setns(cgroupns, CLONE_NEWCGROUP))
		FAIL("join cgroup namespace");
	if (netns >= 0 && setns(netns, CLONE_NEWNET))
		FAIL("join network namespace %s", r->netns);
	if (setns(mountns, CLONE_NEWNS))
		FAIL("join mount namespace");
	if (setns(userns, CLONE_NEWUSER) || setresgid(0, 0, 0) || setresuid(0, 0, 0) || setgroups(0, NULL))
		FAIL("join user namespace");
	die_with_parent();
	/* On v2 the cgroup namespace is the container's own: only then can its cgroup be mounted in it. */
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | (netns < 0 ? CLONE_NEWNET : 0) | (cgroupns < 0 ? CLONE_NEWCGROUP : 0)))
		FAIL("make namespaces");
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		FAIL("start the first process");
	if (!pid)
		first(r, root);
	char text[32];
	int n = snprintf(text, sizeof text, "pid %ld", pid);
	if (send(report, text, n, MSG_NOSIGNAL) < 0)
		_exit(1);
	_exit(0);
}

/* ---- launch itself ---- */

/* hear returns one message of the processes below; an error ends the start, and so
 * does their silence. */
static const char *hear(int from, int silence)
{
	static char text[MESSAGE_MAX + 16];
	ssize_t n;
	do
		n = recv(from, text, sizeof text - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0 && !silence)
		fail("the container's first process was killed");
	text[n > 0 ? n : 0] = 0;
	if (!strncmp(text, "error ", 6))
		fail("%s", text + 6);
	return text;
}

/* converse tells the daemon the first process, and lets it go on when the daemon has recorded it. */
static void converse(int child, int from)
{
	long pid = 0;
	for (int ready = 0; !ready || !pid;) {
		const char *text = hear(from, 0);
		if (!strcmp(text, "ready"))
			ready = 1;
		else
			sscanf(text, "pid %ld", &pid);
	}
	while (waitpid(child, 0, 0) < 0 && errno == EINTR)
		;
	char go;
	if (dprintf(STDOUT_FILENO, "ready %ld\n", pid) < 0 || read(STDIN_FILENO, &go, 1) != 1)
		_exit(1);
	if (send(from, "g", 1, MSG_NOSIGNAL) < 0)
		fail("the container's first process was killed");
	hear(from, 1);
	dprintf(STDOUT_FILENO, "started\n");
	/* Until it has taken hold of the process, the daemon needs its parent. */
	while (read(STDIN_FILENO, &go, 1) > 0)
		;
}

/* prepare readies this process: the score and the descriptors that others inherit. */
static void prepare(struct request *r)
{
	for (int i = 0; i < STDIO; i++) {
		if (r->stdio >> i & 1)
			continue;
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null < 0 || (null != FIRST_FILE + i && dup3(null, FIRST_FILE + i, O_CLOEXEC) < 0))
			FAIL("open /dev/null");
		if (null != FIRST_FILE + i)
			close(null);
	}
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score < 0 || write(score, r->oom, strlen(r->oom)) < 0)
		FAIL("set oom_score_adj");
	close(score);
	if (prctl(PR_SET_DUMPABLE, 0))
		FAIL("hide memory");
}

int main(int argc, char **argv)
{
	static struct request r;
	read_request(&r);
	if (argc > 1 && !strcmp(argv[1], "--check"))
		return 0;
	prepare(&r);
	int userns = open_path("namespace", r.userns, 0), mountns = open_path("namespace", r.mountns, 0);
	int netns = r.netns ? open_path("namespace", r.netns, 0) : -1;
	int cgroup = r.cgroup ? open_path("cgroup", r.cgroup, O_DIRECTORY) : -1;
	int root = clone_mounts(&r), cgroupns = r.cgroup ? -1 : cgroup_namespace(&r);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		FAIL("make socket pair");
	pid_t child = r.cgroup ? fork_into(cgroup) : fork();
	if (child < 0)
		FAIL("fork");
	if (!child) {
		close(pair[0]);
		report = pair[1];
		talks_to_daemon = 0;
		enter(&r, root, userns, mountns, netns, cgroupns);
	}
	close(pair[1]);
	converse(child, pair[0]);
	return 0;
}
