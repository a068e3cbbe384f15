module Ladle
  # What a client sent that this server will not answer.
  class BadRequest < StandardError; end

  # One request, read from a socket. Header names are lower case.
  Request = Struct.new(:verb, :path, :query, :version, :headers) do
    const_set :MAX_LINE, 8 * 1024
    const_set :MAX_HEADERS, 100
    const_set :MAX_BODY, 1024 * 1024

    # The next request of the socket, or nil when the client is done.
    def self.read(socket)
      line = read_line(socket) or return nil
      verb, target, version = line.split(" ")
      raise BadRequest, "request line" unless target&.start_with?("/") && %w[HTTP/1.0 HTTP/1.1].include?(version)

      path, query = target.split("?", 2)
      request = new(verb, path, URI.decode_www_form(query.to_s).to_h, version, read_headers(socket))
      request.skip_body(socket)
      request
    rescue ArgumentError
      raise BadRequest, "query"
    end

    def self.read_headers(socket)
      headers = {}
      while (line = read_line(socket)) && !line.empty?
        name, value = line.split(":", 2)
        raise BadRequest, "header" if value.nil? || headers.size == self::MAX_HEADERS

        headers[name.downcase] = value.strip
      end
      headers
    end

    def self.read_line(socket)
      line = socket.gets("\n", self::MAX_LINE) or return nil
      raise BadRequest, "line too long" unless line.end_with?("\n")

      line.chomp
    end

    def keep_alive?
      connection = headers["connection"].to_s.downcase
      version == "HTTP/1.1" ? connection != "close" : connection == "keep-alive"
    end

    # Bodies are read past, so that the next request of the connection is found.
    def skip_body(socket)
      raise BadRequest, "chunked bodies are not supported" if headers["transfer-encoding"]

      length = Integer(headers.fetch("content-length", "0"), 10)
      raise BadRequest, "body too long" unless length.between?(0, self.class::MAX_BODY)

      socket.read(length)
    end
  end
end
