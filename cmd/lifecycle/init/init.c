/*
 * init is the first process of every container. It completes the sandbox,
 * starts the app as its child, reaps what the app leaves behind, forwards the
 * signals that the daemon sends, and ends as the app did. It starts the further
 * processes of a container as well, and then becomes them.
 *
 *     init [--seccomp FILE] [--cgroup-fds 3,4,5] [--rlimits 4=0,7=1024] [--tls-ports 61001,61443] [--] [argv...]
 *
 *     init [--seccomp FILE] [--cgroup-fds 3,4,5] --relay DESCRIPTOR
 *     init --stand-in NAME
 *
 * As PID 1 without argv it only reaps, until the container is removed.
 *
 * As PID 1 it also listens at the TLS ports, as inetd would: the first connection
 * starts the program that terminates TLS, which inherits the sockets from
 * descriptor 3, and ends when it has had none for a while. Until a client comes,
 * and after, the ports cost nothing but the sockets; and clients wait in these,
 * instead of being refused, while the program starts, or when it was killed.
 *
 * The app is not PID 1 itself, because the kernel ignores signals from inside
 * that PID 1 does not catch: abort() and kill(getpid(), SIGTERM) would have no
 * effect. And few apps wait for processes that they did not start, so zombies
 * would pile up to the container's limit of processes.
 *
 * Processes of one container may be given to another one's to signal. In that one a
 * stand-in takes the place of the process: what signals it signals a relay, by the
 * socket that both have as their standard input, and the relay the process, of which
 * it has a pidfd. The socket ends with the process, and the stand-in with the socket.
 *
 * It is written in C without a C library, the only such program of cupola,
 * because every container pays for it: a Go program needs megabytes and more
 * than a millisecond, this one 0.3 ms and a page or two of stack.
 *
 * The cgroups are joined and the seccomp filter is installed here, and not in
 * libcontainer's init, because they are what makes a container slow to start: a
 * filter compiled by libseccomp takes 22 to 30 ms, and a cgroup v1 attach by
 * another process waits for an RCU grace period, which a thread that moves
 * itself does not.
 *
 * The app may trace or signal this process where both have the same user. It
 * gains nothing: filter, capabilities and cgroups are the same.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/eventpoll.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/in.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <linux/signal.h>
#include <linux/signalfd.h>
#include <linux/time_types.h>
#include <linux/uio.h>
#include <linux/wait.h>

/* Exit codes where the app did not run. The last two are a shell's. */
enum { SETUP = 125, CANNOT_RUN = 126, NOT_FOUND = 127 };

enum { PATH_SIZE = 4096 };

/* The TLS ports: FIRST is the descriptor of the first socket that listens, BACKLOG
 * how many clients wait in each, REST the pause before a retry, in nanoseconds. */
enum { FIRST = 3, BACKLOG = 1024, REST = 200000000 };
enum { INET = 2, STREAM = 1, CLOEXEC = O_CLOEXEC };

/* The program that terminates TLS (contract.Helper and contract.CommandProxy). */
#define PROXY "/.cupola/lifecycle", "proxy"

/* call makes a system call; it returns a negative errno where that failed. */
#if defined(__x86_64__)
static long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	asm volatile("syscall" : "+a"(nr) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return nr;
}
asm(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
#elif defined(__aarch64__)
static long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 asm("x8") = nr;
	register long x0 asm("x0") = a;
	register long x1 asm("x1") = b;
	register long x2 asm("x2") = c;
	register long x3 asm("x3") = d;
	register long x4 asm("x4") = e;
	register long x5 asm("x5") = f;
	asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
asm(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl start\n");
#else
#error "init knows the system calls of amd64 and arm64 only"
#endif

#define CALL(nr, a, b, c, d, e, f, ...) call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define call(...) CALL(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

static unsigned long length(const char *s)
{
	unsigned long n = 0;
	while (s[n])
		n++;
	return n;
}

static int equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static const char *reason(long err)
{
	switch (-err) {
	case ENOENT: return "no such file or directory";
	case ENOTDIR: return "not a directory";
	case EACCES: return "permission denied";
	case EPERM: return "operation not permitted";
	case ENOEXEC: return "exec format error";
	case E2BIG: return "argument list too long";
	case ENOMEM: return "cannot allocate memory";
	case EAGAIN: return "resource temporarily unavailable";
	case ETXTBSY: return "text file busy";
	case EBADF: return "bad file descriptor";
	case EINVAL: return "invalid argument";
	case ELOOP: return "too many levels of symbolic links";
	case EADDRINUSE: return "address already in use";
	}
	return "system call failed";
}

static _Noreturn void end(int code)
{
	for (;;)
		call(__NR_exit_group, code);
}

/* fail ends the process and says why, in one write. */
__attribute__((noinline)) static _Noreturn void fail(int code, const char *what, const char *name, const char *why)
{
	const char *parts[] = {"init: ", what, name, ": ", why, "\n"};
	struct iovec line[6];
	for (int i = 0; i < 6; i++)
		line[i] = (struct iovec){(void *)parts[i], length(parts[i])};
	call(__NR_writev, 2, line, 6);
	end(code);
}

/* join moves the process into each cgroup of a list of descriptors. "0" means
 * the writer itself: on cgroup v1 a single thread that moves itself takes no
 * lock that waits for RCU. */
static void join(const char *fds)
{
	for (const char *s = fds; *s;) {
		long fd = 0;
		const char *begin = s;
		for (; *s >= '0' && *s <= '9' && fd < 1000000; s++)
			fd = fd * 10 + *s - '0';
		if (s == begin || fd < 3 || (*s && (*s != ',' || !s[1])))
			fail(SETUP, "--cgroup-fds ", fds, "want inherited descriptors like 3,4");
		long n = call(__NR_write, fd, "0", 1);
		if (n < 0)
			fail(SETUP, "join cgroups by descriptors ", fds, reason(n));
		if (*s)
			s++;
	}
}

/* number reads the digits at *s and leaves *s behind them. It reports whether
 * there are any and they fit. */
static int number(const char **s, unsigned long *n)
{
	const char *begin = *s;
	for (*n = 0; **s >= '0' && **s <= '9'; (*s)++)
		if (__builtin_mul_overflow(*n, 10UL, n) || __builtin_add_overflow(*n, (unsigned long)(**s - '0'), n))
			return 0;
	return *s != begin;
}

/* limit sets soft and hard limits of resources, by the kernel's numbers. The
 * process does so itself: the daemon would need CAP_SYS_RESOURCE over the
 * container's user namespace, which does not belong to the daemon's user. */
static void limit(const char *limits)
{
	for (const char *s = limits; *s;) {
		unsigned long resource, value;
		if (!number(&s, &resource) || *s++ != '=' || !number(&s, &value) || (*s && (*s != ',' || !s[1])))
			fail(SETUP, "--rlimits ", limits, "want limits like 4=0,7=1024");
		const unsigned long both[2] = {value, value};
		long err = call(__NR_prlimit64, 0, resource, both, 0);
		if (err)
			fail(SETUP, "set limits ", limits, reason(err));
		if (*s)
			s++;
	}
}

/* confine installs the filter that file holds, as an array of sock_filter. It
 * stays in the page cache: a copy would be memory of each container. */
static void confine(const char *file)
{
	const unsigned long each = sizeof(struct sock_filter);
	long fd = call(__NR_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(SETUP, "open seccomp filter ", file, reason(fd));
	long size = call(__NR_lseek, fd, 0, 2 /* SEEK_END */);
	if (size <= 0 || size % each || size / each > BPF_MAXINSNS)
		fail(SETUP, "seccomp filter ", file, "not a BPF program");
	long at = call(__NR_mmap, 0, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at < 0 && at > -4096)
		fail(SETUP, "map seccomp filter ", file, reason(at));
	struct sock_fprog program = {size / each, (struct sock_filter *)at};
	/* Without it an unprivileged process may not install a filter. */
	long err = call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1);
	if (!err)
		err = call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	if (err)
		fail(SETUP, "install seccomp filter ", file, reason(err));
	call(__NR_munmap, at, size);
}

/* close_inherited keeps every descriptor but the standard ones from the app: one
 * that leaked from the daemon would be a way out of the sandbox. */
static void close_inherited(void)
{
	if (!call(__NR_close_range, 3, ~0U, 0))
		return;
	/* Kernels before 5.9; as many as a daemon's leak could plausibly reach. */
	for (int fd = 3; fd < 1024; fd++)
		call(__NR_close, fd);
}

/* next copies the next absolute directory of PATH and "/name" to path, and
 * returns what follows; null at the end. */
static const char *next(const char *dirs, const char *name, char *path)
{
	unsigned long name_length = length(name);
	while (*dirs) {
		const char *dir = dirs;
		unsigned long n = 0;
		while (dir[n] && dir[n] != ':')
			n++;
		dirs += n + (dir[n] == ':');
		if (dir[0] != '/' || n + name_length + 2 > PATH_SIZE)
			continue;
		for (unsigned long i = 0; i < n; i++)
			path[i] = dir[i];
		path[n] = '/';
		for (unsigned long i = 0; i <= name_length; i++)
			path[n + 1 + i] = name[i];
		return dirs;
	}
	return 0;
}

/* execute executes a program, and returns why it cannot. One that a process still has open
 * for writing is tried again for a second: the daemon writes what a container downloads, and
 * what the daemon executes meanwhile has its descriptors for a moment. */
static long execute(const char *path, char **argv, char **env)
{
	const struct __kernel_timespec pause = {0, 1000000};
	long err;
	for (int tries = 1000; tries; tries--) {
		err = call(__NR_execve, path, argv, env);
		if (err != -ETXTBSY)
			break;
		call(__NR_nanosleep, &pause, 0);
	}
	return err;
}

/* become executes argv, which it finds in PATH if its name has no slash. PID 1
 * never runs it, and so does not get the stack that it needs. */
__attribute__((noinline)) static _Noreturn void become(char **argv, char **env)
{
	const char *dirs = "";
	char path[PATH_SIZE];
	for (const char *s = argv[0]; *s; s++) {
		if (*s != '/')
			continue;
		long err = execute(argv[0], argv, env);
		long found = call(__NR_faccessat, AT_FDCWD, argv[0], 0);
		fail(found && found != -EACCES ? NOT_FOUND : CANNOT_RUN, "exec ", argv[0], reason(err));
	}
	for (char **e = env; *e; e++)
		if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=')
			dirs = *e + 5;
	while ((dirs = next(dirs, argv[0], path))) {
		long err = execute(path, argv, env);
		if (err != -ENOENT && err != -ENOTDIR && err != -EACCES)
			fail(CANNOT_RUN, "exec ", path, reason(err));
	}
	fail(NOT_FOUND, "exec ", argv[0], "executable file not found in $PATH");
}

/* program is one that init starts as often as it ends. */
struct program {
	long pid; /* 0 when it does not run */
	int failed; /* it ended other than well */
};

/* go_on lets a child go on that has asked to be traced by its parent (PTRACE_TRACEME) and
 * stops for a signal: it gets the signal, but for the SIGTRAP that only traced programs get. */
static void go_on(long pid, int signal)
{
	call(__NR_ptrace, PTRACE_DETACH, pid, 0, signal == SIGTRAP ? 0 : signal);
}

/* reap takes every child that has ended, and ends as the app if that is one: with
 * its code, or 128 + its signal. The kernel then kills what is left in the
 * container. PID 1 cannot end by a signal itself. */
static void reap(long app, struct program *proxy)
{
	int status;
	long pid;
	while ((pid = call(__NR_wait4, -1, &status, WNOHANG, 0)) > 0) {
		int signal = status & 0x7f, code = status >> 8 & 0xff;
		if (signal == 0x7f) { /* stopped */
			go_on(pid, code);
			continue;
		}
		if (pid == app)
			call(__NR_exit_group, signal ? 128 + signal : code);
		if (pid == proxy->pid)
			*proxy = (struct program){0, status != 0};
	}
}

/* launch runs argv as a child that leads its own session, as it would without an
 * init. The app begins with none blocked. */
static long launch(char **argv, char **env, const unsigned long *none)
{
	long app = call(__NR_clone, SIGCHLD);
	if (app < 0)
		fail(SETUP, "start ", argv[0], reason(app));
	if (app)
		return app;
	call(__NR_setsid);
	call(__NR_rt_sigprocmask, SIG_SETMASK, none, 0, sizeof *none);
	become(argv, env);
}

/* open_ports listens at each of a list of ports, with descriptors from FIRST on, and
 * returns how many they are. */
static int open_ports(const char *ports)
{
	int n = 0;
	for (const char *s = ports; *s; n++) {
		unsigned long port;
		if (!number(&s, &port) || !port || port > 65535 || (*s && (*s != ',' || !s[1])))
			fail(SETUP, "--tls-ports ", ports, "want ports like 61001,61443");
		if (*s)
			s++;
		const struct sockaddr_in any = {.sin_family = INET, .sin_port = __builtin_bswap16(port)};
		long fd = call(__NR_socket, INET, STREAM | CLOEXEC), err = fd < 0 ? fd : 0;
		if (!err)
			err = call(__NR_bind, fd, &any, sizeof any);
		if (!err)
			err = call(__NR_listen, fd, BACKLOG);
		if (err)
			fail(SETUP, "listen at TLS ports ", ports, reason(err));
	}
	return n;
}

/* watch returns a descriptor that tells when a client or a signal has come. */
static long watch(int ports, const unsigned long *signals)
{
	long set = call(__NR_epoll_create1, CLOEXEC), signal = call(__NR_signalfd4, -1, signals, sizeof *signals, CLOEXEC), err = set < 0 ? set : signal;
	for (int i = 0; i <= ports && err >= 0; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data = i < ports};
		err = call(__NR_epoll_ctl, set, EPOLL_CTL_ADD, i < ports ? FIRST + i : signal, &event);
	}
	if (err < 0)
		fail(SETUP, "watch TLS ports", "", reason(err));
	return set;
}

/* pause_before_retry bounds how often something is tried that fails at once. */
static void pause_before_retry(void)
{
	const struct __kernel_timespec time = {0, REST};
	call(__NR_nanosleep, &time, 0);
}

/* terminate_tls starts the program that does, with nothing of the app's environment,
 * and returns its PID; 0 where it cannot be started now. One that failed before
 * starts after a pause. */
__attribute__((noinline)) static long terminate_tls(int ports, int failed, const unsigned long *none)
{
	long proxy = call(__NR_clone, SIGCHLD);
	if (proxy < 0)
		pause_before_retry(); /* the container has as many processes as it may */
	if (proxy)
		return proxy < 0 ? 0 : proxy;
	if (failed)
		pause_before_retry();
	call(__NR_setsid);
	call(__NR_rt_sigprocmask, SIG_SETMASK, none, 0, sizeof *none);
	for (int i = 0; i < ports; i++)
		call(__NR_fcntl, FIRST + i, F_SETFD, 0);
	char *argv[] = {PROXY, 0}, *env[] = {0};
	become(argv, env);
}

/* supervise reaps, forwards all other signals to the app, if there is one, and
 * starts what terminates TLS when a client comes and it does not run. */
static _Noreturn void supervise(long app, int ports, long watched, const unsigned long *all, const unsigned long *none)
{
	const struct __kernel_timespec now = {0, 0};
	struct program proxy = {0, 0};
	for (;;) {
		const struct __kernel_timespec *until = 0;
		if (ports && !proxy.pid) {
			struct epoll_event event = {0};
			if (call(__NR_epoll_pwait, watched, &event, 1, -1) == 1 && event.data) {
				proxy.pid = terminate_tls(ports, proxy.failed, none);
				continue;
			}
			until = &now;
		}
		long signal = call(__NR_rt_sigtimedwait, all, 0, until, sizeof *all);
		if (signal == SIGCHLD)
			reap(app, &proxy);
		else if (signal > 0 && app)
			call(__NR_kill, app, signal);
	}
}

/* hide_arguments keeps the app's arguments from being listed twice, and pkill -f
 * from finding two processes where one was meant. */
static void hide_arguments(int argc, char **argv)
{
	if (argc < 2)
		return;
	char *end = argv[argc - 1] + length(argv[argc - 1]);
	for (volatile char *c = argv[1]; c < end; c++)
		*c = 0;
}

/* either waits until one of two descriptors can be read, or has ended, and returns
 * which; the second one if both have. */
static int either(int a, int b)
{
	struct pollfd both[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
	long n;
	while ((n = call(__NR_ppoll, both, 2)) == -EINTR)
		;
	if (n < 0)
		fail(SETUP, "wait for signals", "", reason(n));
	return both[1].revents ? b : a;
}

/* relay signals the process that a pidfd is of as the socket says, byte by byte, until
 * either ends. SIGKILL kills all processes beside it, as the end of a container does: the
 * process may be PID 1, which the kernel protects. */
static _Noreturn void relay(const char *descriptor)
{
	unsigned long inherited;
	if (!number(&descriptor, &inherited))
		fail(SETUP, "--relay ", descriptor, "want a descriptor");
	const int process = 1;
	long err = call(__NR_dup3, inherited, process, 0);
	if (err < 0)
		fail(SETUP, "--relay", "", reason(err));
	close_inherited();
	unsigned char signal;
	while (either(0, process) == 0 && call(__NR_read, 0, &signal, 1) == 1)
		if (signal == SIGKILL)
			call(__NR_kill, -1, SIGKILL);
		else
			call(__NR_pidfd_send_signal, process, signal);
	end(0);
}

/* stand_in passes all signals that it gets on to the socket, until that ends, or its standard
 * error does: then all that came before are passed on first. It closes its standard output
 * when it is ready. */
static _Noreturn void stand_in(void)
{
	const unsigned long all = ~0UL;
	call(__NR_rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof all);
	long signals = call(__NR_signalfd4, -1, &all, sizeof all, CLOEXEC);
	if (signals < 0)
		fail(SETUP, "watch signals", "", reason(signals));
	call(__NR_close, 1);
	struct pollfd ends[3] = {{signals, POLLIN, 0}, {0, POLLIN, 0}, {2, POLLIN, 0}};
	for (;;) {
		if (call(__NR_ppoll, ends, 3) < 0)
			continue;
		if (!ends[0].revents)
			end(0);
		struct signalfd_siginfo info;
		call(__NR_read, signals, &info, sizeof info);
		unsigned char signal = info.ssi_signo;
		if (call(__NR_write, 0, &signal, 1) != 1)
			end(0);
	}
}

__attribute__((used)) static _Noreturn void start(long *stack)
{
	int argc = stack[0];
	char **argv = (char **)(stack + 1), **env = argv + argc + 1;
	const int first = call(__NR_getpid) == 1;
	const unsigned long all = ~0UL, none = 0;
	/* At once, if what started it did not: what is neither blocked nor caught does not reach PID 1. */
	if (first)
		call(__NR_rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof all);
	const char *filter = 0, *limits = "", *tls = "", *of = 0, *name = 0;
	int i = 1;
	for (; i < argc && argv[i][0] == '-'; i += 2) {
		if (equal(argv[i], "--")) {
			i++;
			break;
		}
		if (i + 1 == argc)
			fail(SETUP, "flag ", argv[i], "needs a value");
		if (equal(argv[i], "--seccomp"))
			filter = argv[i + 1];
		else if (equal(argv[i], "--cgroup-fds"))
			join(argv[i + 1]);
		else if (equal(argv[i], "--rlimits"))
			limits = argv[i + 1];
		else if (equal(argv[i], "--tls-ports"))
			tls = argv[i + 1];
		else if (equal(argv[i], "--relay"))
			of = argv[i + 1];
		else if (equal(argv[i], "--stand-in"))
			name = argv[i + 1];
		else
			fail(SETUP, "flag ", argv[i], "unknown");
	}
	if (filter)
		confine(filter);
	if (of)
		relay(of);
	close_inherited();
	if (name) {
		call(__NR_prctl, PR_SET_NAME, name);
		hide_arguments(argc, argv);
		stand_in();
	}
	if (!first && i >= argc)
		fail(SETUP, "command", "", "missing");
	if (!first) {
		limit(limits);
		become(argv + i, env);
	}
	/* Ignored, as it may have been inherited, it would not tell of children. */
	const unsigned long fallback[4] = {0};
	call(__NR_rt_sigaction, SIGCHLD, fallback, 0, sizeof all);
	/* The limit of open files is the app's: it must not forbid these. */
	int ports = open_ports(tls);
	long watched = ports ? watch(ports, &all) : 0;
	limit(limits);
	long app = i < argc ? launch(argv + i, env, &none) : 0;
	hide_arguments(argc, argv);
	supervise(app, ports, watched, &all, &none);
}
