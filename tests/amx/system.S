# Where rom.S jumps to, at 1 MB: lets the tiles be used, and takes the program's system calls.
        .code64
        .section .start, "ax"
        mov     $stack_end, %rsp
        xor     %ecx, %ecx              # XCR0: x87, SSE, AVX, AVX-512, the sizes of tiles, tiles
        mov     $0x600e7, %eax
        xor     %edx, %edx
        xsetbv
        mov     $0xc0000081, %ecx       # STAR: the segments of system calls
        xor     %eax, %eax
        mov     $0x18, %edx
        wrmsr
        mov     $0xc0000082, %ecx       # LSTAR: their entry
        mov     $entry, %eax
        xor     %edx, %edx
        wrmsr
        mov     $0xc0000084, %ecx       # FMASK: the flags that they clear
        xor     %eax, %eax
        wrmsr
        call    begin

# All runs at the highest privilege, so there is no way back but a jump. Registers stay as they are.
entry:  mov     %rsp, program_stack
        mov     $stack_end, %rsp
        push    %rcx
        push    %r11
        push    %rdi
        push    %rsi
        push    %rdx
        push    %r10
        push    %r8
        push    %r9
        mov     %rdx, %rcx
        mov     %rsi, %rdx
        mov     %rdi, %rsi
        mov     %rax, %rdi
        call    answer
        pop     %r9
        pop     %r8
        pop     %r10
        pop     %rdx
        pop     %rsi
        pop     %rdi
        popfq
        pop     %rcx
        mov     program_stack, %rsp
        jmp     *%rcx

        .section .pages, "aw"           # each address is its own; four pages of 1 GB
        .quad   more_pages + 3
        .org    4096
more_pages:
        .quad   0x83, 0x40000083, 0x80000083, 0xc0000083
        .org    8192

        .bss
        .balign 64
program_stack:
        .skip   64
        .skip   65536
stack_end:
        .section .note.GNU-stack, "", @progbits
