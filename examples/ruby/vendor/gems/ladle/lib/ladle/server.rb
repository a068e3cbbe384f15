require "io/wait"
require "socket"
require "uri"

module Ladle
  # Serves a block: it is given a Request and returns [status, headers, body], and after them, if it
  # likes, what to call once the response is out.
  class Server
    REASONS = { 200 => "OK", 400 => "Bad Request", 404 => "Not Found", 500 => "Internal Server Error" }.freeze
    IDLE_SECONDS = 60

    def initialize(host, port, &handler)
      @listener = TCPServer.new(host, port)
      @listener.listen(128)
      @handler = handler
      @mutex = Mutex.new
      @idle = ConditionVariable.new
      @in_flight = 0
      @stopping = false
    end

    # Accepts connections until stop is called.
    def run
      loop do
        Thread.new(@listener.accept) { |socket| converse(socket) }
      end
    rescue IOError, Errno::EBADF
      raise unless @stopping
    end

    # Takes no new connections and waits for requests in flight; false when some were left after the timeout.
    def stop(timeout)
      @stopping = true
      @listener.close
      deadline = now + timeout
      @mutex.synchronize do
        @idle.wait(@mutex, deadline - now) while @in_flight.positive? && now < deadline
        @in_flight.zero?
      end
    end

    private

    def converse(socket)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      loop do
        break unless socket.wait_readable(IDLE_SECONDS)
        break unless track { exchange(socket) }
      end
    rescue SystemCallError, IOError
      nil # the client went away
    ensure
      socket.close
    end

    # Reads and answers one request; true when the connection stays open.
    def exchange(socket)
      request = Request.read(socket) or return false
      keep = request.keep_alive? && !@stopping
      *response, after = answer(request).values_at(0..3)
      write(socket, keep, response, head_only: request.verb == "HEAD")
      after&.call
      keep
    rescue BadRequest => e
      write(socket, false, [400, { "Content-Type" => "text/plain" }, "#{e.message}\n"])
      false
    end

    def answer(request)
      @handler.call(request)
    rescue StandardError => e
      warn e.full_message(highlight: false)
      [500, { "Content-Type" => "text/plain" }, "something went wrong\n"]
    end

    def write(socket, keep, answer, head_only: false)
      status, headers, body = answer
      head = headers.merge("Content-Length" => body.bytesize, "Connection" => keep ? "keep-alive" : "close")
      lines = ["HTTP/1.1 #{status} #{REASONS.fetch(status, "Status")}", *head.map { |name, value| "#{name}: #{value}" }]
      socket.write("#{lines.join("\r\n")}\r\n\r\n#{body unless head_only}")
    end

    def track
      @mutex.synchronize { @in_flight += 1 }
      yield
    ensure
      @mutex.synchronize do
        @in_flight -= 1
        @idle.broadcast
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
