# Joins the functions for Redis into one text in C: cmake -DFOLDER=... -DTO=... -P redis_library.cmake
# The library is named after its text, so that those of several versions stand beside each other on one server.
file(GLOB paths ${FOLDER}/*.lua)
list(SORT paths)
set(text "")
foreach(path ${paths})
  file(READ ${path} part HEX)
  string(APPEND text "${part}")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 12 hash)
set(name doppel_${hash})
string(HEX "#!lua name=${name}\nlocal NAME = '${name}'\n" head)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${head}${text}")
file(WRITE ${TO} "/* The functions for Redis; made by cmake/redis_library.cmake. */\n#include \"known/redis.h\"\n\n"
     "const char dp_redis_library_name[] = \"${name}\";\n"
     "const char dp_redis_library[] = {${bytes}0};\n")
